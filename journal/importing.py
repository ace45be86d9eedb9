"""Takes exported journals in, if they are what was written."""

import json
from collections.abc import Iterable
from datetime import datetime
from itertools import groupby
from typing import Any
from uuid import UUID

from django.db import connection, transaction

from journal.entries import STEERING
from journal.errors import ImportRefused
from journal.verify import EntryRow, check_rows

_HEAD = """INSERT INTO journal_head (run_id, epoch, last_seq, last_steering_seq, last_recorded_at, last_hash)
    VALUES (%s, %s, %s, %s, %s, %s) ON CONFLICT DO NOTHING"""
_ENTRY = """INSERT INTO journal_entry
    (run_id, seq, kind, v, step, settles, epoch, actor, request_id, recorded_at, salt, spot, link, body)
    VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)"""


def import_journals(lines: Iterable[str]) -> list[UUID]:
    """The runs that were imported, each whole, all or none. Raises ImportRefused for a run that is here already, a line
    that is none of `export_run`, and a journal that was changed."""
    imported = []
    with transaction.atomic():
        for run_id, found in groupby(map(_parse, lines), key=lambda line: line[0]):
            lines_of_run = list(found)
            if len(lines_of_run) != lines_of_run[0][3]:  # a cut-off end leaves the chain whole
                raise ImportRefused(f"{run_id} has {len(lines_of_run)} of {lines_of_run[0][3]} entries.")
            _import_run(run_id, [line[1:3] for line in lines_of_run])
            imported.append(run_id)
    return imported


def _parse(text: str) -> tuple[UUID, EntryRow, str | None, int]:
    try:
        line: dict[str, Any] = json.loads(text)
        row = EntryRow(
            line["seq"], line["kind"], line["v"], line["step"], line["settles"], line["epoch"], line["actor"],
            datetime.fromisoformat(line["recorded_at"]), bytes.fromhex(line["salt"]), bytes.fromhex(line["spot"]),
            bytes.fromhex(line["link"]) if line["link"] is not None else None, line["body"].encode("latin-1"),
        )  # fmt: skip
        return UUID(line["run_id"]), row, line["request_id"], int(line["of"])
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ImportRefused(f"Not a line of an exported journal: {text[:60]!r}") from error


def _import_run(run_id: UUID, entries: list[tuple[EntryRow, str | None]]) -> None:
    rows = [row for row, _ in entries]
    last = rows[-1]
    faults = check_rows(run_id, rows)
    if faults:
        raise ImportRefused(str(faults[0]))
    steering = max((row.seq for row in rows if row.kind in STEERING), default=0)
    with connection.cursor() as cursor:
        cursor.execute(_HEAD, (run_id, last.epoch, last.seq, steering, last.recorded_at, last.link))
        if cursor.rowcount == 0:
            raise ImportRefused(f"{run_id} is here already.")
        cursor.executemany(_ENTRY, [(run_id, *row[:7], request_id, *row[7:]) for row, request_id in entries])
