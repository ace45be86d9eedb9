"""The tagged forms of values that JSON does not know, in both directions. Final: docs/journal-format.md."""

import base64
import dataclasses
import json
import re
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from types import UnionType
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

MAX_DEPTH = 100  # nested containers; deeper ones are described. Keeps both directions far from Python's stack limit.
INT64 = 1 << 63  # larger integers are tagged: other readers of JSON do not keep them, and Python limits their digits
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_SURROGATES = re.compile("([\ud800-\udfff])")


@dataclasses.dataclass(frozen=True, slots=True)
class Unencodable:
    """Stands for a value that could not be kept."""

    type_name: str
    path: str
    why: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Pointer:
    """Where a payload lies that is too large for its entry; `size` (bytes), `sha256` (hex) of what lies there."""

    uri: str
    sha256: str
    size: int
    media_type: str


@dataclasses.dataclass(frozen=True, slots=True, repr=False)
class Sealed:
    """A value that whoever wrote it did not want to be read; `box` is it, encrypted. The journal cannot open it."""

    box: bytes

    def __repr__(self) -> str:
        return "[secret]"


class Writer:
    """Turns one value into its tagged form and notes in `problems` the paths of what could not be kept."""

    def __init__(self, *, sort_items: bool = False) -> None:
        self.problems: list[str] = []
        self._sort_items = sort_items
        self._open: set[int] = set()  # ids of the containers around the present value

    def tag(self, value: Any, path: str = "") -> Any:
        if value is None or value is True or value is False:
            return value
        try:
            leaf = _LEAVES.get(type(value))
            if leaf is not None:
                return leaf(value)
            if id(value) in self._open:
                return self._describe(value, path, "contains itself")
            if len(self._open) >= MAX_DEPTH:
                return self._describe(value, path, "nested too deeply")
            self._open.add(id(value))
            try:
                return self._compound(value, path)
            finally:
                self._open.discard(id(value))
        except Exception as error:  # values run other people's code: whatever it raises is a description, not an error
            return self._describe(value, path, type(error).__name__)

    def _describe(self, value: Any, path: str, why: str = "") -> dict[str, str]:
        self.problems.append(path)
        said = {"$": "unencodable", "type": type_name(value), "path": path}
        return said | {"why": why} if why else said

    def _compound(self, value: Any, path: str) -> Any:
        kind = type(value)
        if kind is dict:
            return self._dict(value, path)
        if kind is list:
            return self._items(value, path)
        if kind is tuple:
            return {"$": "tuple", "items": self._items(value, path)}
        if kind is set or kind is frozenset:
            items = [self.tag(item, f"{path}{{}}") for item in value]
            return {"$": kind.__name__, "items": sorted(items, key=_sorted_dump)}
        return self._object(value, path)

    def _dict(self, value: dict[Any, Any], path: str) -> Any:
        if "$" not in value and all(type(key) is str and is_well_formed(key) for key in value):
            return {key: self.tag(item, _below(path, key)) for key, item in value.items()}
        items = [[self.tag(key, f"{path}.keys()"), self.tag(item, _below(path, key))] for key, item in value.items()]
        return {"$": "dict", "items": sorted(items, key=_sorted_dump) if self._sort_items else items}

    def _items(self, value: list[Any] | tuple[Any, ...], path: str) -> list[Any]:
        return [self.tag(item, f"{path}[{n}]") for n, item in enumerate(value)]

    def _object(self, value: Any, path: str) -> Any:
        named = {"type": type_name(value)}
        if isinstance(value, type):
            return self._describe(value, path)
        if isinstance(value, Enum):
            return {"$": "enum", **named, "name": value.name, "value": self.tag(value.value, f"{path}.value")}
        if isinstance(value, BaseException):
            return {"$": "exception", **named, "message": _str(_ADDRESS.sub("", str(value)))}
        fields = _fields(value)
        if fields is not None:
            tag = "dataclass" if dataclasses.is_dataclass(value) else "model"
            return {"$": tag, **named, "fields": self.tag(fields, path)}
        for base, plain in _BASES:
            if isinstance(value, base):
                return {"$": "object", **named, "value": self.tag(plain(value), path)}
        return self._describe(value, path)


def type_name(value: object) -> str:
    kind = type(value)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def is_well_formed(text: str) -> bool:
    """False if there are surrogates, which strict JSON cannot hold."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def lift(value: Any) -> Any:
    """The value of a tagged form. Tags that are unknown or cannot be lifted are kept as they are."""
    kind = type(value)
    if kind is list:
        return [lift(item) for item in value]
    if kind is not dict:
        return value
    read = _READERS.get(value["$"]) if type(value.get("$")) is str else None
    if read is not None:
        try:
            return read(value)
        except (ArithmeticError, KeyError, TypeError, ValueError):
            return value
    return {key: lift(item) for key, item in value.items()}


def _below(path: str, key: Any) -> str:
    if type(key) is str and key.isidentifier():
        return f"{path}.{key}" if path else key
    return f"{path}[{key!r}]" if type(key) in (str, int, float, bool) else f"{path}[{type_name(key)}]"


def _sorted_dump(tagged: Any) -> str:
    return json.dumps(tagged, sort_keys=True, separators=(",", ":"))


def _fields(value: Any) -> dict[str, Any] | None:
    """The fields of a dataclass or of a pydantic model, known by its attributes so that it need not be imported."""
    if dataclasses.is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    names = getattr(type(value), "__pydantic_fields__", None)
    if names is None:
        return None
    return {name: getattr(value, name) for name in names} | dict(getattr(value, "__pydantic_extra__", None) or {})


def _str(value: str) -> Any:
    if value.isascii() or is_well_formed(value):
        return value
    # Text and, as numbers, the surrogates in it: two lone ones side by side would be read back as one character.
    parts = [ord(p) if n % 2 else p for n, p in enumerate(_SURROGATES.split(value))]
    return {"$": "str", "parts": parts}


def _moment(value: datetime | time) -> dict[str, Any]:
    said: dict[str, Any] = {"$": type(value).__name__, "iso": value.isoformat()}
    zone = value.tzinfo.key if isinstance(value.tzinfo, ZoneInfo) else None
    if value.tzinfo is not None and value.utcoffset() is None and zone is None:
        raise ValueError("a zone without an offset")
    return said | ({"zone": zone} if zone else {}) | ({"fold": 1} if value.fold else {})


def _read_moment[M: (datetime, time)](kind: type[M], said: dict[str, Any]) -> M:
    value = kind.fromisoformat(said["iso"]).replace(fold=said.get("fold", 0))
    try:
        return value.replace(tzinfo=ZoneInfo(said["zone"])) if "zone" in said else value
    except (OSError, ValueError, LookupError):  # this machine does not know the zone: the offset is right all the same
        return value


def _float(value: float) -> Any:
    return value if value - value == 0.0 else {"$": "float", "value": repr(value)}


def _int(value: int) -> Any:
    return value if -INT64 <= value < INT64 else {"$": "int", "hex": hex(value)}


_LEAVES: dict[type, Callable[[Any], Any]] = {
    str: _str,
    int: _int,
    float: _float,
    bytes: lambda v: {"$": "bytes", "base64": base64.b64encode(v).decode()},
    datetime: _moment,
    time: _moment,
    date: lambda v: {"$": "date", "iso": v.isoformat()},
    timedelta: lambda v: {"$": "timedelta", "days": v.days, "seconds": v.seconds, "microseconds": v.microseconds},
    Decimal: lambda v: {"$": "decimal", "value": str(v)},
    UUID: lambda v: {"$": "uuid", "value": str(v)},
    Pointer: lambda v: {"$": "payload", "uri": v.uri, "sha256": v.sha256, "size": v.size, "media_type": v.media_type},
    Sealed: lambda v: {"$": "sealed", "box": base64.b64encode(v.box).decode()},
    Unencodable: lambda v: (
        {"$": "unencodable", "type": v.type_name, "path": v.path} | ({"why": v.why} if v.why else {})
    ),
}

# What a subclass is kept as. The base's own methods are called: an overridden one may say something else.
_BASES: tuple[tuple[type | UnionType, Callable[[Any], Any]], ...] = (
    (str, str.__str__),
    (int, int.__int__),
    (float, float.__float__),
    (bytes | bytearray | memoryview, bytes),
    (list, list),
    (tuple, tuple),
    (dict, dict),
    (set, set),
    (frozenset, frozenset),
    (datetime, lambda v: datetime.combine(_plain_date(v), _plain_time(v.timetz()))),
    (date, lambda v: _plain_date(v)),
    (time, lambda v: _plain_time(v)),
    (timedelta, lambda v: timedelta(v.days, v.seconds, v.microseconds)),
    (Decimal, Decimal),
    (UUID, lambda v: UUID(int=v.int)),
)


def _plain_date(value: date) -> date:
    return date(value.year, value.month, value.day)


def _plain_time(value: time) -> time:
    return time(value.hour, value.minute, value.second, value.microsecond, value.tzinfo, fold=value.fold)


_READERS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "str": lambda said: "".join(p if type(p) is str else chr(p) for p in said["parts"]),
    "int": lambda said: int(said["hex"], 16),
    "float": lambda said: float(said["value"]),
    "bytes": lambda said: base64.b64decode(said["base64"], validate=True),
    "datetime": lambda said: _read_moment(datetime, said),
    "time": lambda said: _read_moment(time, said),
    "date": lambda said: date.fromisoformat(said["iso"]),
    "timedelta": lambda said: timedelta(said["days"], said["seconds"], said["microseconds"]),
    "decimal": lambda said: Decimal(said["value"]),
    "uuid": lambda said: UUID(said["value"]),
    "dict": lambda said: {lift(key): lift(item) for key, item in said["items"]},
    "tuple": lambda said: tuple(map(lift, said["items"])),
    "set": lambda said: set(map(lift, said["items"])),
    "frozenset": lambda said: frozenset(map(lift, said["items"])),
    "enum": lambda said: lift(said["value"]),
    "object": lambda said: lift(said["value"]),
    "dataclass": lambda said: lift(said["fields"]),
    "model": lambda said: lift(said["fields"]),
    "exception": lambda said: {"type": said["type"], "message": lift(said["message"])},
    "payload": lambda said: Pointer(said["uri"], said["sha256"], said["size"], said["media_type"]),
    "sealed": lambda said: Sealed(base64.b64decode(said["box"], validate=True)),
    "unencodable": lambda said: Unencodable(said["type"], said["path"], said.get("why", "")),
}
