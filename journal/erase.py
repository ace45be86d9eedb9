"""Erasing what was said, and keeping that it was said: bodies become tombstones, the chain still verifies."""

from collections.abc import Collection
from uuid import UUID

from django.db import connection, transaction

from journal.append import append_person, lock_head
from journal.entries import Draft, Entry, Kind
from journal.errors import NoSuchEntry, NotFinished
from journal.payloads import payload_store, pointers_in
from journal.read import read_entries


def erase_entries(run_id: UUID, seqs: Collection[int] | None = None, *, actor: str, reason: str) -> list[int]:
    """Erases the bodies of these entries (None: of all) and their payloads, and appends a NOTE that says so. Returns
    the seqs that had something to erase. Raises NoSuchRun, NoSuchEntry, and NotFinished: a run that goes on needs its
    journal."""
    with transaction.atomic():
        lock_head(run_id)
        entries = read_entries(connection, run_id)
        if not any(entry.kind == Kind.DONE for entry in entries):
            raise NotFinished(str(run_id))
        if missing := sorted(set(seqs or ()) - {entry.seq for entry in entries}):
            raise NoSuchEntry(f"({', '.join(map(str, missing[:10]))})")
        chosen = [entry for entry in entries if seqs is None or entry.seq in seqs]
        erased = [entry.seq for entry in chosen if _erase(entry)]
        if erased:
            note = Draft(Kind.NOTE, {"text": "erased", "erased": erased, "reason": reason})
            append_person(run_id, [note], request_id=None, actor=actor)
    # Only now: an object that is gone before the commit would be missing if the commit failed.
    kept = {pointer for entry in entries if entry.seq not in erased for pointer in pointers_in(entry.body)}
    for pointer in {p for entry in chosen for p in pointers_in(entry.body)} - kept:
        payload_store().delete(pointer)
    return erased


def _erase(entry: Entry) -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT journal_erase_v1(%s, %s)", (entry.run_id, entry.seq))
        row = cursor.fetchone()
    return row is not None and bool(row[0])
