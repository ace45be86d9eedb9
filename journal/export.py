"""A journal as lines of JSON, each entry with every byte that its digest and the chain need."""

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection

from journal.append import Conn
from journal.encoding import decode
from journal.entries import Entry
from journal.errors import NoSuchRun
from journal.upcasters import upcast

_ROWS = """SELECT seq, kind, v, step, settles, epoch, actor, request_id, recorded_at, salt, spot, link, body
    FROM journal_entry WHERE run_id = %s ORDER BY seq"""


def export_run(run_id: UUID, conn: Conn | None = None) -> Iterator[str]:
    """One line an entry, `of` how many; `body` is its bytes as text, salt, spot, link are hex. Raises NoSuchRun."""
    with (conn or connection).cursor() as cursor:
        cursor.execute(_ROWS, (run_id,))
        rows = cursor.fetchall()
    if not rows:
        raise NoSuchRun(str(run_id))
    for row in rows:
        yield json.dumps(_line(run_id, row) | {"of": len(rows)})


def read_line(text: str) -> Entry:
    """The entry of a line of `export_run`, as `read_entries` would read it. ValueError, KeyError if it is none."""
    line = json.loads(text)
    body = upcast(line["kind"], line["v"], decode(line["body"].encode("latin-1")))
    return Entry(
        UUID(line["run_id"]), line["seq"], line["kind"], line["v"], line["step"], line["settles"], line["epoch"],
        line["actor"], datetime.fromisoformat(line["recorded_at"]), body,
    )  # fmt: skip


def _line(run_id: UUID, row: Any) -> dict[str, Any]:
    seq, kind, v, step, settles, epoch, actor, request_id, recorded_at, salt, spot, link, body = row
    return {
        "run_id": str(run_id), "seq": seq, "kind": kind, "v": v, "step": step, "settles": settles, "epoch": epoch,
        "actor": actor, "request_id": request_id, "recorded_at": recorded_at.isoformat(), "salt": bytes(salt).hex(),
        "spot": bytes(spot).hex(), "link": None if link is None else bytes(link).hex(),
        "body": bytes(body).decode("latin-1"),
    }  # fmt: skip
