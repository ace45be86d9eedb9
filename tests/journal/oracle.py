"""The byte rules once more, by hand, and every promise that one journal can show by itself."""

from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any
from uuid import UUID

import psycopg

ROWS = """SELECT seq, kind, v, step, settles, epoch, actor, salt, spot, body, recorded_at, link, request_id
    FROM journal_entry WHERE run_id = %s ORDER BY seq"""


def field(data: bytes | None) -> bytes:
    return b"\xff\xff\xff\xff" if data is None else len(data).to_bytes(4, "big") + data


def eight(number: int | None) -> bytes | None:
    return None if number is None else number.to_bytes(8, "big", signed=True)


def entry_digest(
    kind: str, v: int, step: int | None, settles: int | None, epoch: int, actor: str, payload: bytes
) -> bytes:
    fields = (kind.encode(), eight(v), eight(step), eight(settles), eight(epoch), actor.encode(), payload)
    return sha256(b"".join(map(field, fields))).digest()


def link(prev: bytes, run: UUID, first: int, at: datetime, digests: list[bytes]) -> bytes:
    microseconds = (at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    return sha256(prev + run.bytes + (eight(first) or b"") + (eight(microseconds) or b"") + b"".join(digests)).digest()


def check_journal(conn: psycopg.Connection[Any], run: UUID) -> list[Any]:
    """Its rows."""
    rows = conn.execute(ROWS, (run,)).fetchall()
    prev, first, digests = bytes(32), 1, []
    for n, (seq, kind, v, step, settles, epoch, actor, salt, spot, body, at, stored, _) in enumerate(rows, 1):
        assert seq == n, "gapless"
        digests.append(entry_digest(kind, v, step, settles, epoch, actor, sha256(salt + body).digest()))
        assert spot == digests[-1][:4]
        if stored is not None:
            assert stored == link(prev, run, first, at, digests), f"the chain breaks at {seq}"
            prev, first, digests = stored, seq + 1, []
    assert not digests, "the last entry of an append has the link"
    assert [r[5] for r in rows] == sorted(r[5] for r in rows), "epochs only rise"
    assert [r[10] for r in rows] == sorted(r[10] for r in rows), "recorded_at never runs backwards"
    settled = [r[4] for r in rows if r[4] is not None]
    assert len(settled) == len(set(settled)), "one settling OBS an intent"
    head = conn.execute("SELECT last_seq, last_hash FROM journal_head WHERE run_id = %s", (run,)).fetchone()
    assert (len(rows), prev) == head
    return rows
