"""Arrays as PostgreSQL's binary format has them, packed column by column.

psycopg looks at every element of a list to find its type; for the fourteen columns of an append that was the largest
part of the committer's Python (with one append in flight 190 of 350 us, measured).
"""

from collections.abc import Callable, Sequence
from struct import pack
from typing import Any
from uuid import UUID

from psycopg import Connection
from psycopg.adapt import Dumper
from psycopg.pq import Format

_OIDS = {
    "bool": (16, 1000),
    "bytea": (17, 1001),
    "int8": (20, 1016),
    "int4": (23, 1007),
    "text": (25, 1009),
    "uuid": (2950, 2951),
}


class _Packed(bytes):
    """An array in its binary form."""


class _Dumper(Dumper):
    format = Format.BINARY

    def dump(self, obj: bytes) -> bytes:
        return obj


def _fixed(code: str, size: int) -> Callable[[Sequence[Any]], bytes]:
    def items(values: Sequence[Any]) -> bytes:
        words = [size] * (2 * len(values))
        words[1::2] = values
        return pack(">" + f"i{code}" * len(values), *words)

    return items


def _varied(to_bytes: Callable[[Any], bytes]) -> Callable[[Sequence[Any]], bytes]:
    def items(values: Sequence[Any]) -> bytes:
        return b"".join([part for data in map(to_bytes, values) for part in (len(data).to_bytes(4, "big"), data)])

    return items


def _packer(name: str, items: Callable[[Sequence[Any]], bytes]) -> tuple[type[_Dumper], type[_Packed], Any]:
    element, array = _OIDS[name]
    kind = type(f"{name}_array", (_Packed,), {})
    dumper = type(f"{name}_array_dumper", (_Dumper,), {"oid": array})

    def packed(values: Sequence[Any]) -> _Packed:
        found: _Packed = kind(pack(">5i", 1, 0, element, len(values), 1) + items(values))
        return found

    return dumper, kind, packed


def _uuid_bytes(value: UUID) -> bytes:
    return value.bytes


_PACKERS = {
    "bool": _packer("bool", _fixed("?", 1)),
    "int4": _packer("int4", _fixed("i", 4)),
    "int8": _packer("int8", _fixed("q", 8)),
    "text": _packer("text", _varied(str.encode)),
    "bytea": _packer("bytea", _varied(bytes)),
    "uuid": _packer("uuid", _varied(_uuid_bytes)),
}


def array(name: str, values: Sequence[Any]) -> bytes:
    """The parameter for a non-empty array of bool, int4, int8, text, bytea or uuid without NULLs. struct.error for an
    integer that does not fit."""
    packed: bytes = _PACKERS[name][2](values)
    return packed


def register_arrays(conn: Connection[Any]) -> None:
    """Lets `conn` send what `array` makes."""
    for dumper, kind, _ in _PACKERS.values():
        conn.adapters.register_dumper(kind, dumper)
