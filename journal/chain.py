"""The byte rules of the hash chain, the same as in sql/0002_append.sql. Final: docs/journal-format.md."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from uuid import UUID

START_OF_CHAIN = bytes(32)
SALT_BYTES = 16
SPOT_BYTES = 4
_NULL = b"\xff\xff\xff\xff"
_1970 = datetime(1970, 1, 1, tzinfo=UTC)


def payload_digest(salt: bytes, body: bytes) -> bytes:
    """32 bytes over the salt and the body as stored."""
    return sha256(salt + body).digest()


def entry_digest(
    kind: str, v: int, step: int | None, settles: int | None, epoch: int, actor: str, payload: bytes
) -> bytes:
    """32 bytes over the fields of an entry; `payload` is its payload digest."""
    fields = (kind.encode(), _int(v), _int(step), _int(settles), _int(epoch), actor.encode(), payload)
    return sha256(b"".join(_NULL if f is None else len(f).to_bytes(4, "big") + f for f in fields)).digest()


def link(prev: bytes, run_id: UUID, first_seq: int, recorded_at: datetime, digests: Iterable[bytes]) -> bytes:
    """32 bytes that tie an append to all before it; `digests` are its entries' in order."""
    microseconds = (recorded_at - _1970) // timedelta(microseconds=1)
    head = prev + run_id.bytes + first_seq.to_bytes(8, "big") + microseconds.to_bytes(8, "big", signed=True)
    return sha256(head + b"".join(digests)).digest()


def _int(value: int | None) -> bytes | None:
    return None if value is None else value.to_bytes(8, "big", signed=True)
