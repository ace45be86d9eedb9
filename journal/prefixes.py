"""A journal that begins as a copy of another's first entries, under a chain of its own.

What is copied keeps kind, v, step, settles, actor, recorded_at, request_id and the bytes of its body, which gains
`copied_from`: the journal where it was first written, and its seq there. Its epoch is 0: no session of the new run
wrote it. Copies of copies stay as they are, so that they name the first one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple
from uuid import UUID

from django.db import connection

from journal.chain import SPOT_BYTES, START_OF_CHAIN, entry_digest, link
from journal.encoding import decode, encode
from journal.entries import STEERING, Draft, seal
from journal.errors import NoSuchRun, PrefixDamaged, PrefixErased
from journal.payloads import PayloadStore, pointers_in
from journal.verify import EntryRow, check_rows

# To the end of the append that the last of them belongs to: without it, its link proves nothing.
_ROWS = """SELECT seq, kind, v, step, settles, epoch, actor, recorded_at, salt, spot, link, body, request_id
    FROM journal_entry WHERE run_id = %(run)s AND seq <= coalesce(
        (SELECT min(seq) FROM journal_entry WHERE run_id = %(run)s AND seq >= %(at)s AND link IS NOT NULL), %(at)s)
    ORDER BY seq"""
_ERASED = """SELECT min(seq) FROM journal_entry WHERE run_id = %s AND seq <= %s AND octet_length(salt) = 0"""
_ENTRIES = """COPY journal_entry (run_id, seq, kind, v, step, settles, epoch, actor, recorded_at, request_id, salt,
    spot, link, body) FROM STDIN (FORMAT BINARY)"""
_ENTRY_TYPES = (
    "uuid", "int8", "text", "int4", "int4", "int4", "int8", "text", "timestamptz", "text", "bytea", "bytea", "bytea",
    "bytea",
)  # fmt: skip
_HEAD = """INSERT INTO journal_head (run_id, last_seq, last_steering_seq, last_recorded_at, last_hash)
    VALUES (%s, %s, %s, %s, %s)"""
# Only a pointer begins so: quotes in a text are escaped, and a dict with the key `$` is written otherwise.
_POINTER = re.compile(rb'(\{"\$":"payload","uri":"[^"]*/)[^"/]+(/[0-9a-f]{64}")')


class Row(NamedTuple):
    """An entry with every byte of it."""

    entry: EntryRow
    request_id: str | None


def read_prefix(run_id: UUID, at: int) -> list[Row]:
    """Entries 1 to `at`, once their chain was found whole. Raises NoSuchRun, PrefixDamaged, PrefixErased."""
    with connection.cursor() as cursor:
        cursor.execute(_ROWS, {"run": run_id, "at": at})
        rows = [
            Row(EntryRow(*row[:8], *(None if b is None else bytes(b) for b in row[8:12])), row[12])
            for row in cursor.fetchall()
        ]
    if not rows:
        raise NoSuchRun(str(run_id))
    faults = check_rows(run_id, [row.entry for row in rows])
    if faults:
        raise PrefixDamaged(str(faults[0]))
    prefix = rows[:at]
    if erased := [row.entry.seq for row in prefix if not row.entry.salt]:
        raise PrefixErased(f"(entry {erased[0]})")
    return prefix


def refuse_erased(run_id: UUID, at: int) -> None:
    """Raises PrefixErased if one of the entries 1 to `at` was erased since it was read. Under the head's lock."""
    with connection.cursor() as cursor:
        cursor.execute(_ERASED, (run_id, at))
        found = cursor.fetchone()
    if found is not None and found[0] is not None:
        raise PrefixErased(f"(entry {found[0]})")


def copy_payloads(rows: Sequence[Row], run_id: UUID, store: PayloadStore) -> int:
    """Puts what their pointers stand for into the new run's folder, before its entries are committed. How many there
    were. Raises PayloadMissing, PayloadAltered, PayloadStoreDown."""
    found = {
        pointer.sha256: pointer
        for row in rows
        if b'"$":"payload"' in row.entry.body
        for pointer in pointers_in(decode(row.entry.body))
    }
    for pointer in found.values():
        store.copy(pointer, run_id)
    return len(found)


def changed_body(body: bytes, fields: Mapping[str, Any]) -> bytes:
    """The encoded body with these fields put in, or in place of what they were; all else as it was written."""
    raw: dict[str, Any] = json.loads(body)
    for name, value in fields.items():
        raw[name] = json.loads(encode(value))
    return json.dumps(raw, ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode()


def write_prefix(
    run_id: UUID,
    rows: Sequence[Row],
    source: UUID,
    copied_to: int,
    changed: Mapping[int, bytes],
    versions: Mapping[int, int],
) -> None:
    """The head and the entries of a new journal, in the caller's transaction. IntegrityError if there is one already.

    `copied_to`: up to there the source's own entries are copies. `changed`, `versions`: bodies and versions of those
    that are not copied as they are, by seq.
    """
    drafts = [_draft(run_id, row, source, copied_to, changed, versions) for row in rows]
    prev, steering, last = START_OF_CHAIN, 0, rows[-1].entry
    with connection.cursor() as cursor, connection.wrap_database_errors:
        with cursor.copy(_ENTRIES) as copy:
            copy.set_types(_ENTRY_TYPES)
            for _, same_time in groupby(zip(rows, drafts, strict=True), key=lambda pair: pair[0].entry.recorded_at):
                for written in _append(run_id, list(same_time), prev):
                    copy.write_row(written)
                prev = written[-2]
        steering = max((row.entry.seq for row in rows if row.entry.kind in STEERING), default=0)
        cursor.execute(_HEAD, (run_id, last.seq, steering, last.recorded_at, prev))


def _draft(
    run_id: UUID, row: Row, source: UUID, copied_to: int, changed: Mapping[int, bytes], versions: Mapping[int, int]
) -> Draft:
    e = row.entry
    body = changed.get(e.seq, e.body)
    if e.seq > copied_to:
        body = _named(body, source, e.seq)
    v = versions.get(e.seq, e.v)
    return Draft(e.kind, {}, e.step, e.settles, actor=e.actor, v=v, data=_moved(body, run_id))


def _append(run_id: UUID, pairs: Sequence[tuple[Row, Draft]], prev: bytes) -> Iterator[tuple[Any, ...]]:
    """The rows of what was written at one time, the last of them with the link over all of them."""
    sealed = seal([draft for _, draft in pairs])
    digests = [
        entry_digest(d.kind, d.v, d.step, d.settles, 0, d.actor, payload)
        for (_, d), (_, payload, _) in zip(pairs, sealed, strict=True)
    ]
    first = pairs[0][0].entry
    whole = link(prev, run_id, first.seq, first.recorded_at, digests)
    for n, ((row, d), (salt, _, body), digest) in enumerate(zip(pairs, sealed, digests, strict=True), 1):
        yield (
            run_id, row.entry.seq, d.kind, d.v, d.step, d.settles, 0, d.actor, first.recorded_at, row.request_id, salt,
            digest[:SPOT_BYTES], whole if n == len(pairs) else None, body,
        )  # fmt: skip


def _named(body: bytes, source: UUID, seq: int) -> bytes:
    """The encoded body with `copied_from` at its end."""
    comma = b"" if body == b"{}" else b","
    return b'%s%s"copied_from":{"run":"%s","seq":%d}}' % (body[:-1], comma, str(source).encode(), seq)


def _moved(body: bytes, run_id: UUID) -> bytes:
    """With its pointers into the folder of this run."""
    if b'"$":"payload"' not in body:
        return body
    return _POINTER.sub(rb"\g<1>" + str(run_id).encode() + rb"\g<2>", body)
