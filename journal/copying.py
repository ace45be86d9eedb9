"""Whole journals of the past written at once, with the chain an append would have made: for databases filled for tests.

Nothing here judges an append: the runs must be new. A worker's entries go through the committer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection

from journal.chain import SPOT_BYTES, START_OF_CHAIN, entry_digest, link
from journal.entries import STEERING, Draft, seal

_ENTRIES = """COPY journal_entry (run_id, seq, kind, v, step, settles, epoch, actor, recorded_at, salt, spot, link,
    body) FROM STDIN (FORMAT BINARY)"""
_ENTRY_TYPES = (
    "uuid", "int8", "text", "int4", "int4", "int4", "int8", "text", "timestamptz", "bytea", "bytea", "bytea", "bytea",
)  # fmt: skip
_HEADS = """COPY journal_head (run_id, epoch, last_steering_seq, last_seq, last_recorded_at, last_append_no,
    append_first_seq, append_last_seq, append_at, last_hash) FROM STDIN (FORMAT BINARY)"""
_HEAD_TYPES = ("uuid", "int8", "int8", "int8", "timestamptz", "int8", "int8", "int8", "timestamptz", "bytea")


@dataclass(slots=True)
class PastAppend:
    """Entries that were committed together; `by_person` ones leave the epoch's append number alone."""

    at: datetime
    epoch: int
    entries: Sequence[Draft]
    by_person: bool = False


def copy_journals(journals: Iterable[tuple[UUID, Sequence[PastAppend]]]) -> None:
    """Each journal whole, in the caller's transaction. IntegrityError for a run that is here already."""
    heads: list[tuple[Any, ...]] = []
    with connection.cursor() as cursor, connection.wrap_database_errors:
        with cursor.copy(_ENTRIES) as copy:
            copy.set_types(_ENTRY_TYPES)
            for run_id, appends in journals:
                for row in _rows(run_id, appends, heads):
                    copy.write_row(row)
        with cursor.copy(_HEADS) as copy:
            copy.set_types(_HEAD_TYPES)
            for head in heads:
                copy.write_row(head)


def _rows(run_id: UUID, appends: Sequence[PastAppend], heads: list[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
    """The rows of one journal; its head is added to `heads` after them."""
    prev, seq, steering, number, epoch = START_OF_CHAIN, 0, 0, 0, 0
    for append in appends:
        first, sealed = seq + 1, seal(append.entries)
        digests = [
            entry_digest(e.kind, e.v, e.step, e.settles, append.epoch, e.actor, payload)
            for e, (_, payload, _) in zip(append.entries, sealed, strict=True)
        ]
        prev = link(prev, run_id, first, append.at, digests)
        last = seq + len(digests)
        for e, (salt, _, body), digest in zip(append.entries, sealed, digests, strict=True):
            seq += 1
            if e.kind in STEERING:
                steering = seq
            yield (
                run_id, seq, e.kind, e.v, e.step, e.settles, append.epoch, e.actor, append.at, salt,
                digest[:SPOT_BYTES], prev if seq == last else None, body,
            )  # fmt: skip
        if append.epoch != epoch:
            number, epoch = 0, append.epoch
        if not append.by_person and epoch:  # START is epoch 0's, and has no number
            number += 1
            answered = (number, first, last, append.at)
    numbered = answered if number else (0, None, None, None)
    heads.append((run_id, epoch, steering, seq, appends[-1].at, *numbered, prev))


def make_partition_of(day: datetime) -> None:
    """The partition of the month of `day`, which may lie before the months that a sweep makes."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT journal_make_partition(%s)", (day.date(),))
