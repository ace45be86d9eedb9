from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from journal.encoding import decode, encode
from journal.errors import PayloadAltered, PayloadMissing, PayloadStoreDown
from journal.payloads import PayloadStore, Pointer, pointers_in

RUN = UUID("0193a000-0000-7000-8000-0000000000ff")
LARGE: list[Any] = [
    b"\0\xff" * 40_000,
    "zoë" * 40_000,
    "\ud800" * 40_000,
    {"a": (1, 2.5)} | {"b": "x" * 40_000},
    10**80_000,
]


@pytest.fixture
def store(tmp_path: Path) -> PayloadStore:
    return PayloadStore(f"{tmp_path.as_uri()}/a store")


def where(store: PayloadStore, pointer: Pointer) -> Path:
    assert store._folder is not None
    return store._folder / str(RUN) / pointer.sha256


@pytest.mark.parametrize("value", LARGE, ids=["bytes", "text", "surrogates", "values", "integer"])
def test_a_large_value_goes_to_the_store_and_comes_back(store: PayloadStore, value: Any) -> None:
    body = {"outcome": "succeeded", "result": value, "small": [1, 2, 3]}
    kept = store.offload(RUN, body)
    assert len(encode(kept)) <= store.limit and (kept["outcome"], kept["small"]) == ("succeeded", [1, 2, 3])
    pointer = kept["result"]
    assert pointer.uri == f"{store.url}/{RUN}/{pointer.sha256}" and pointer.size == where(store, pointer).stat().st_size
    assert sha256(where(store, pointer).read_bytes()).hexdigest() == pointer.sha256
    assert store.resolve(decode(encode(kept))) == body
    assert store.preview(pointer, 10) == store.open(pointer)[:10]


def test_fifty_megabytes_are_stored_as_they_are(store: PayloadStore) -> None:
    value = b"x" * 50_000_000
    pointer = store.offload(RUN, {"result": value})["result"]
    assert (pointer.size, pointer.media_type) == (50_000_000, "application/octet-stream")
    assert where(store, pointer).stat().st_size == 50_000_000


def test_a_body_within_the_limit_is_left_alone(store: PayloadStore) -> None:
    body = {"result": "x" * 32_000}
    assert store.offload(RUN, body) == body == store.resolve(body)


def test_the_largest_values_go_first_and_small_ones_never(tmp_path: Path) -> None:
    store = PayloadStore(tmp_path.as_uri(), limit=1_000)
    kept = store.offload(RUN, {"a": "a" * 900, "b": "b" * 2_000, "c": "c" * 10})
    assert (type(kept["a"]), type(kept["b"]), kept["c"]) == (Pointer, Pointer, "c" * 10)
    many = {f"k{n}": "x" * 20 for n in range(100)}
    assert store.offload(RUN, many) == many, "nothing in it is worth a pointer"


def test_putting_the_same_again_is_no_error(store: PayloadStore) -> None:
    assert store.put(RUN, "x" * 100) == store.put(RUN, "x" * 100)


def test_a_missing_or_altered_payload_is_named(store: PayloadStore) -> None:
    pointer = store.put(RUN, b"abcdef")
    where(store, pointer).write_bytes(b"abcdeg")
    with pytest.raises(PayloadAltered, match=rf"{RUN}/{pointer.sha256}"):
        store.load(pointer)
    where(store, pointer).write_bytes(b"abc")
    with pytest.raises(PayloadAltered, match="3 bytes, expected 6"):
        store.load(pointer)
    where(store, pointer).unlink()
    for use in (store.load, store.preview):
        with pytest.raises(PayloadMissing, match=rf"{RUN}/{pointer.sha256}"):
            use(pointer)
    store.delete(pointer)
    with pytest.raises(PayloadAltered, match="does not end with"):
        store.load(Pointer(f"{store.url}/{RUN}/../../etc/passwd", pointer.sha256, 6, "text/plain"))


def test_a_store_that_moved_still_finds_its_payloads(tmp_path: Path) -> None:
    pointer = PayloadStore((tmp_path / "one").as_uri()).put(RUN, "x")
    (tmp_path / "one").rename(tmp_path / "two")
    assert PayloadStore((tmp_path / "two").as_uri()).load(pointer) == "x"


def test_a_store_that_does_not_answer_says_so(tmp_path: Path) -> None:
    store = PayloadStore(tmp_path.as_uri())
    (tmp_path / str(RUN)).write_text("in the way of the run's folder")
    with pytest.raises(PayloadStoreDown, match=str(RUN)):
        store.put(RUN, "x")


def test_pointers_are_found_however_deep() -> None:
    one, two = Pointer("u/1", "1", 1, "t"), Pointer("u/2", "2", 2, "t")
    assert list(pointers_in({"a": [(one, 7)], "b": {"c": two}, "d": "x"})) == [one, two]
