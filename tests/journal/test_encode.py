"""Values to bytes and back."""

import json
import math
import socket
from collections import Counter, OrderedDict, namedtuple
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from journal import encoding
from journal.encoding import Pointer, Unencodable, canonical, decode, encode, problems, tagged
from tests.rig.work import work_of


class Colour(Enum):
    RED = (1, 2)


class Level(IntEnum):
    HIGH = 3


class Word(StrEnum):
    YES = "yes"


@dataclass
class Point:
    x: int
    y: Decimal


class Order(BaseModel):
    id: str
    total: Decimal


class Shouting(str):
    def __str__(self) -> str:
        return "not what is stored"


Pair = namedtuple("Pair", "a b")

# What is final. The bytes on the right are read by every later version.
GOLDEN: list[tuple[Any, bytes]] = [
    ({"b": 1, "a": [True, None, 0.5]}, b'{"b":1,"a":[true,null,0.5]}'),
    ("zoë ☃ \U0001f600 \0", b'"zo\\u00eb \\u2603 \\ud83d\\ude00 \\u0000"'),
    ("\\u0000", b'"\\\\u0000"'),
    ("a\ud800b", b'{"$":"str","parts":["a",55296,"b"]}'),
    ("\ud83d\ude00", b'{"$":"str","parts":["",55357,"",56832,""]}'),
    (-0.0, b"-0.0"),
    (1e22, b"1e+22"),
    (math.inf, b'{"$":"float","value":"inf"}'),
    (-math.inf, b'{"$":"float","value":"-inf"}'),
    (2**63 - 1, b"9223372036854775807"),
    (2**63, b'{"$":"int","hex":"0x8000000000000000"}'),
    (-(2**64), b'{"$":"int","hex":"-0x10000000000000000"}'),
    ({"$": 1}, b'{"$":"dict","items":[["$",1]]}'),
    ({"$": "uuid", "value": "x"}, b'{"$":"dict","items":[["$","uuid"],["value","x"]]}'),
    ({1: "a", None: 2}, b'{"$":"dict","items":[[1,"a"],[null,2]]}'),
    ((1, [2]), b'{"$":"tuple","items":[1,[2]]}'),
    ({2, 1}, b'{"$":"set","items":[1,2]}'),
    (frozenset({"a"}), b'{"$":"frozenset","items":["a"]}'),
    (b"\0\xff", b'{"$":"bytes","base64":"AP8="}'),
    (datetime(2026, 1, 2, 3, 4, 5, 6), b'{"$":"datetime","iso":"2026-01-02T03:04:05.000006"}'),
    (datetime(2026, 1, 2, tzinfo=UTC), b'{"$":"datetime","iso":"2026-01-02T00:00:00+00:00"}'),
    (
        datetime(2026, 10, 25, 2, 30, fold=1, tzinfo=ZoneInfo("Europe/Zurich")),
        b'{"$":"datetime","iso":"2026-10-25T02:30:00+01:00","zone":"Europe/Zurich","fold":1}',
    ),
    (date(2026, 1, 2), b'{"$":"date","iso":"2026-01-02"}'),
    (time(3, 4, tzinfo=UTC), b'{"$":"time","iso":"03:04:00+00:00"}'),
    (timedelta(-1, 2, 3), b'{"$":"timedelta","days":-1,"seconds":2,"microseconds":3}'),
    (Decimal("1.10"), b'{"$":"decimal","value":"1.10"}'),
    (UUID(int=7), b'{"$":"uuid","value":"00000000-0000-0000-0000-000000000007"}'),
    (
        Pointer("file:///p/r/ab", "ab", 9, "text/plain"),
        b'{"$":"payload","uri":"file:///p/r/ab","sha256":"ab","size":9,"media_type":"text/plain"}',
    ),
    (Unencodable("socket.socket", "result"), b'{"$":"unencodable","type":"socket.socket","path":"result"}'),
]
HERE = "tests.journal.test_encode"


@pytest.mark.parametrize(("value", "data"), GOLDEN)
def test_values_have_the_golden_bytes_and_come_back(value: Any, data: bytes) -> None:
    assert encode(value) == data
    back = decode(data)
    assert back == value and type(back) is type(value) and repr(back) == repr(value)


TWO = {"$": "decimal", "value": "2"}
ONE_TWO = {"$": "tuple", "items": [1, 2]}
NAMED: list[tuple[Any, dict[str, Any], Any]] = [
    (Colour.RED, {"$": "enum", "type": f"{HERE}.Colour", "name": "RED", "value": ONE_TWO}, (1, 2)),
    (Level.HIGH, {"$": "enum", "type": f"{HERE}.Level", "name": "HIGH", "value": 3}, 3),
    (Word.YES, {"$": "enum", "type": f"{HERE}.Word", "name": "YES", "value": "yes"}, "yes"),
    (
        Point(1, Decimal(2)),
        {"$": "dataclass", "type": f"{HERE}.Point", "fields": {"x": 1, "y": TWO}},
        {"x": 1, "y": Decimal(2)},
    ),
    (
        Order(id="o", total=Decimal(2)),
        {"$": "model", "type": f"{HERE}.Order", "fields": {"id": "o", "total": TWO}},
        {"id": "o", "total": Decimal(2)},
    ),
    (
        KeyError("k"),
        {"$": "exception", "type": "KeyError", "message": "'k'"},
        {"type": "KeyError", "message": "'k'"},
    ),
    (Shouting("ab"), {"$": "object", "type": f"{HERE}.Shouting", "value": "ab"}, "ab"),
    (Pair(1, 2), {"$": "object", "type": f"{HERE}.Pair", "value": ONE_TWO}, (1, 2)),
    (OrderedDict(a=1), {"$": "object", "type": "collections.OrderedDict", "value": {"a": 1}}, {"a": 1}),
    (Counter("a"), {"$": "object", "type": "collections.Counter", "value": {"a": 1}}, {"a": 1}),
    (bytearray(b"a"), {"$": "object", "type": "bytearray", "value": {"$": "bytes", "base64": "YQ=="}}, b"a"),
]


@pytest.mark.parametrize(("value", "form", "back"), NAMED)
def test_other_types_are_named_and_come_back_as_plain_values(value: Any, form: dict[str, Any], back: Any) -> None:
    data = encode(value)
    assert data.decode() == json.dumps(form, separators=(",", ":"))
    assert decode(data) == back
    assert problems(value) == []


def test_nan_and_huge_integers_come_back() -> None:
    assert encode(math.nan) == b'{"$":"float","value":"nan"}' and math.isnan(decode(encode(math.nan)))
    assert decode(encode([10**5000])) == [10**5000]


def test_the_order_of_keys_is_kept_and_sorted_for_digests_only() -> None:
    one, other = {"b": 1, "a": {"d": 1, "c": 2}, "n": {2: 0, 1: 0}}, {"n": {1: 0, 2: 0}, "a": {"c": 2, "d": 1}, "b": 1}
    assert list(decode(encode(one))) == ["b", "a", "n"] and list(decode(encode(one))["n"]) == [2, 1]
    assert encode(one) != encode(other) and canonical(one) == canonical(other)
    assert canonical({"b": 1, "a": 2}) == b'{"a":2,"b":1}'


class Broken:
    def __repr__(self) -> str:
        raise RuntimeError


@dataclass
class Lazy:
    x: int

    def __getattribute__(self, name: str) -> Any:
        if name == "x":
            raise RuntimeError("not now")
        return super().__getattribute__(name)


class NoText(Exception):
    def __str__(self) -> str:
        raise RuntimeError


def test_what_cannot_be_kept_is_described_by_type_and_path() -> None:
    with socket.socket() as line:
        value = {"items": [1, {"a b": line}], "f": print, "t": int, "b": Broken(), "g": (n for n in ()), "z": Lazy(1)}
        paths = ["result.items[1]['a b']", "result.f", "result.t", "result.b", "result.g", "result.z"]
        assert problems(value) == paths
        back = decode(encode({"result": value}))["result"]
    assert back["items"][1]["a b"] == Unencodable("socket.socket", paths[0])
    assert [back[key].path for key in "ftbgz"] == paths[1:] and back["z"].why == "RuntimeError"
    assert "0x" not in encode({"result": value}).decode()
    assert decode(encode(NoText())).type_name == f"{HERE}.NoText"


def test_cycles_and_deep_nesting_end_in_a_description() -> None:
    knot: list[Any] = [1]
    knot += [knot, {"again": knot}]
    assert decode(encode(knot)) == [
        1,
        Unencodable("list", "[1]", "contains itself"),
        {"again": Unencodable("list", "[2].again", "contains itself")},
    ]
    deep: Any = 7
    for _ in range(20_000):
        deep = {"d": (deep,)}
    (path,) = problems(deep)
    assert path == "result" + ".d[0]" * 50
    assert b"nested too deeply" in encode(deep) and decode(encode(deep))["d"]


def test_no_memory_address_is_stored() -> None:
    assert decode(encode(ValueError(f"at {object()!r} it broke")))["message"] == "at <object object> it broke"


def test_a_value_that_changes_under_the_encoder_is_still_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoding, "_is_plain", lambda value, depth: True)  # it was, a moment ago
    assert decode(encode({"a": math.inf, "f": print})) == {
        "a": math.inf,
        "f": Unencodable("builtin_function_or_method", "f"),
    }


def test_unknown_and_malformed_tags_are_kept_as_they_are() -> None:
    for data in (b'{"$":"later","x":[1]}', b'{"$":"uuid","value":"no"}', b'{"$":"int"}', b'{"$":7}'):
        assert decode(data) == json.loads(data)


def test_bytes_that_were_not_encoded_are_refused() -> None:
    for data in (b"", b"{", b"{}x", b"\xff", b'{"a":nope}'):
        with pytest.raises(ValueError, match=r"."):
            decode(data)


def test_tagged_gives_plain_json_types() -> None:
    assert tagged({"a": (1,), "b": 2}) == {"a": {"$": "tuple", "items": [1]}, "b": 2}


unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def strict(data: bytes) -> Any:
    def refuse(name: str) -> Any:
        raise ValueError(name)

    data.decode("ascii").encode()
    value = json.loads(data, parse_constant=refuse)
    json.dumps(value, ensure_ascii=False).encode()  # no lone surrogates
    return value


texts = st.text(st.characters(exclude_categories=()))
hashable = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts | st.binary() | st.uuids()
    | st.decimals(allow_nan=False) | st.datetimes() | st.dates() | st.times() | st.timedeltas()
    | st.datetimes(timezones=st.timezones() | st.just(UTC) | st.just(timezone(timedelta(seconds=-3601)))),
    lambda inner: st.tuples(inner, inner) | st.frozensets(inner, max_size=3), max_leaves=5,
)  # fmt: skip
values = st.recursive(
    hashable,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(texts | st.just("$"), inner, max_size=4)
        | st.dictionaries(hashable, inner, max_size=3)
        | st.sets(hashable, max_size=3)
    ),
    max_leaves=12,
)


def same(one: Any, other: Any) -> bool:
    """Equal, of the same types, in the same order, -0.0 apart from 0.0."""
    if type(one) is not type(other):
        return False
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return same(list(one), list(other)) and same(list(one.values()), list(other.values()))
    if isinstance(one, datetime):
        return (one.replace(tzinfo=None), one.fold, one.utcoffset()) == (
            other.replace(tzinfo=None),
            other.fold,
            other.utcoffset(),
        )
    if isinstance(one, float):
        return one == other and math.copysign(1, one) == math.copysign(1, other)
    return bool(one == other)


@unhurried
@given(values)
def test_every_value_comes_back_exactly_through_strict_json(value: Any) -> None:
    data = encode(value)
    strict(data)
    assert problems(value) == []
    assert same(decode(data), value)
    assert encode(decode(data)) == data


@unhurried
@given(
    st.dictionaries(st.text(max_size=3), st.integers() | st.lists(st.text(max_size=2), max_size=2), max_size=5),
    st.randoms(),
)
def test_canonical_bytes_do_not_know_the_order_of_keys(value: dict[str, Any], dice: Any) -> None:
    items = list(value.items())
    dice.shuffle(items)
    assert canonical(dict(items)) == canonical(value)


def test_a_plain_body_is_looked_at_once() -> None:
    body = {
        "outcome": "succeeded",
        "result": {"id": "o-1", "total": 4200, "items": [{"sku": "a", "n": 2}] * 4},
        "text": "x" * 120,
    }
    encode(body)
    assert work_of(lambda: encode(body)) < 400, "one look at each value: tagging each is twice that"
