"""Bodies as bytes: ASCII-escaped, strict JSON, where a value that JSON does not know is an object {"$": tag, …}.

`encode` never raises for a value: what cannot be kept becomes a typed description that names its path.
The tags and what they decode to are final: docs/journal-format.md.
"""

import json
from collections.abc import Callable
from typing import Any

from journal.tags import INT64, MAX_DEPTH, Pointer, Unencodable, Writer, is_well_formed, lift

__all__ = ["Pointer", "Unencodable", "canonical", "decode", "encode", "problems", "tagged"]

# The C parts of json without the Python around them: that costs more than they do for a body of 300 bytes.
_ARGUMENTS = (None, None, json.encoder.encode_basestring_ascii, None, ":", ",")
_chunks = json.encoder.c_make_encoder(*_ARGUMENTS, False, False, False)  # type: ignore[attr-defined]
_sorted_chunks = json.encoder.c_make_encoder(*_ARGUMENTS, True, False, False)  # type: ignore[attr-defined]
_scan = json.JSONDecoder().scan_once  # type: ignore[attr-defined]


def encode(value: object) -> bytes:
    """The value as stored."""
    return _dump(value, _chunks, sort_items=False)


def canonical(value: object) -> bytes:
    """The value for digests: as `encode`, with the keys of each dict sorted by code points."""
    return _dump(value, _sorted_chunks, sort_items=True)


def tagged(value: object) -> Any:
    """The value in JSON's own types, awkward ones tagged: what an API may show."""
    return value if _is_plain(value, MAX_DEPTH) else Writer().tag(value)


def decode(data: bytes) -> Any:
    """The value that was encoded; unknown tags are kept as they are. ValueError if the bytes are not of `encode`."""
    try:
        value, end = _scan(data.decode("ascii"), 0)
    except StopIteration:
        end = -1
    if end != len(data):
        raise ValueError("not an encoded body")
    return lift(value) if b'"$"' in data else value


def problems(value: object, root: str = "result") -> list[str]:
    """The paths of what `encode` can only describe, e.g. ["result.items[3]"]."""
    if _is_plain(value, MAX_DEPTH):
        return []
    writer = Writer()
    writer.tag(value, root)
    return writer.problems


def _dump(value: object, chunks: Callable[[Any, int], tuple[str, ...]], *, sort_items: bool) -> bytes:
    try:
        if _is_plain(value, MAX_DEPTH):
            return "".join(chunks(value, 0)).encode("ascii")
    except Exception:  # another thread changes the value meanwhile: the writer describes what it cannot follow
        pass
    return "".join(chunks(Writer(sort_items=sort_items).tag(value), 0)).encode("ascii")


def _is_plain(value: Any, depth: int) -> bool:
    """True if JSON's C encoder writes the value exactly. By exact type: a subclass may mean more than its base."""
    kind = type(value)
    if kind is dict:
        if not depth or "$" in value:
            return False
        for key in value:
            if type(key) is not str or not (key.isascii() or is_well_formed(key)):
                return False
        value = value.values()
    elif kind is list:
        if not depth:
            return False
    else:
        value = (value,)
    for item in value:
        kind = type(item)
        if kind is str:
            if not (item.isascii() or is_well_formed(item)):
                return False
        elif kind is int:
            if not -INT64 <= item < INT64:
                return False
        elif kind is dict or kind is list:
            if not _is_plain(item, depth - 1):
                return False
        elif kind is float:
            if item - item != 0.0:  # NaN or infinite
                return False
        elif item is not None and kind is not bool:
            return False
    return True
