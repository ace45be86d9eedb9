"""Shows that a journal is what was written: no byte changed, no entry missing, the chain whole, the payloads there."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from django.db import connection

from journal.append import Conn
from journal.chain import SPOT_BYTES, START_OF_CHAIN, entry_digest, link, payload_digest
from journal.encoding import decode
from journal.errors import NoSuchRun, PayloadError
from journal.payloads import PayloadStore, payload_store, pointers_in

_TOMBSTONE = re.compile(rb'\{"\$":"erased","digest":"([0-9a-f]{64})"\}')
_HEAD = "SELECT last_seq, last_hash, verified_seq, verified_hash, verified_at FROM journal_head WHERE run_id = %s"
_ROWS = """SELECT seq, kind, v, step, settles, epoch, actor, recorded_at, salt, spot, link, body
    FROM journal_entry WHERE run_id = %s AND seq > %s ORDER BY seq"""
_RUNS = "SELECT run_id FROM journal_head UNION SELECT run_id FROM journal_entry ORDER BY 1"
_KEEP_BROKEN = """INSERT INTO journal_brokenchain AS b (run_id, seq, what) VALUES (%s, %s, %s)
    ON CONFLICT (run_id) DO UPDATE SET seq = excluded.seq, what = excluded.what"""
_IS_WHOLE = "DELETE FROM journal_brokenchain WHERE run_id = %s"
_LOOKED = """UPDATE journal_head h SET verified_at = clock_timestamp()
    FROM (SELECT run_id FROM journal_head WHERE run_id = %s FOR NO KEY UPDATE SKIP LOCKED) mine
    WHERE h.run_id = mine.run_id"""
# Skips a head that is locked: the next page view moves the mark. Never backwards.
_MARK = """UPDATE journal_head h SET verified_seq = %s, verified_hash = %s, verified_at = clock_timestamp()
    FROM (SELECT run_id FROM journal_head WHERE run_id = %s AND verified_seq <= %s FOR NO KEY UPDATE SKIP LOCKED) mine
    WHERE h.run_id = mine.run_id RETURNING h.verified_at"""


@dataclass(frozen=True, slots=True)
class Fault:
    """`seq` is where it shows; 0 stands for the head."""

    run_id: UUID
    seq: int
    what: str

    def __str__(self) -> str:
        return f"{self.run_id} {self.seq} {self.what}"


class VerifiedMark(NamedTuple):
    """Entries up to `seq` were verified, the last time `at`. Not ok: there is a fault behind `seq`."""

    seq: int
    at: datetime | None
    ok: bool


class EntryRow(NamedTuple):
    """All of an entry that its digest and the chain need."""

    seq: int
    kind: str
    v: int
    step: int | None
    settles: int | None
    epoch: int
    actor: str
    recorded_at: datetime
    salt: bytes
    spot: bytes
    link: bytes | None
    body: bytes


def verify_run(
    run_id: UUID, *, payloads: bool = True, conn: Conn | None = None, store: PayloadStore | None = None
) -> list[Fault]:
    """All faults of one journal, in order. Raises NoSuchRun."""
    head, rows, later_seq = _read(conn, run_id, 0)
    if head is None and not rows:
        raise NoSuchRun(str(run_id))
    chain = _Chain(run_id, 0, START_OF_CHAIN)
    for row in rows:
        chain.follow(row)
    chain.finish(head[0] if head else 0, head[1] if head else b"", later_seq)
    if head is None:
        chain.fault(0, "the journal's head is missing")
    if payloads:
        chain.faults += _payload_faults(run_id, rows, store)
    return sorted(chain.faults, key=lambda fault: fault.seq)


def check_rows(run_id: UUID, rows: Sequence[EntryRow]) -> list[Fault]:
    """The faults of a whole journal that comes without a head."""
    chain = _Chain(run_id, 0, START_OF_CHAIN)
    for row in rows:
        chain.follow(row)
    chain.finish(rows[-1].seq, rows[-1].link or b"", rows[-1].seq)
    return chain.faults


def verify_from_mark(run_id: UUID, *, conn: Conn | None = None) -> VerifiedMark:
    """Verifies what came since the last time, without payloads, and moves the mark. Raises NoSuchRun."""
    seq, prev, at = _mark(conn, run_id)
    head, rows, later_seq = _read(conn, run_id, seq)
    assert head is not None
    if not rows and head[0] == seq:
        return VerifiedMark(seq, at, ok=head[1] == prev)
    chain = _Chain(run_id, seq, prev)
    for row in rows:
        chain.follow(row)
    chain.finish(head[0], head[1], later_seq)
    if chain.faults:
        keep_broken(chain.faults[0], conn)
        return VerifiedMark(seq, at, ok=False)
    with (conn or connection).cursor() as cursor:
        cursor.execute(_MARK, (chain.seq, chain.link_at_end, run_id, chain.seq))
        moved = cursor.fetchone()
    return VerifiedMark(chain.seq, moved[0] if moved else at, ok=True)


def verify_again(run_id: UUID, *, whole: bool = True, conn: Conn | None = None) -> list[Fault]:
    """Verifies the chain anew, or what came since the last time, without payloads; and notes when that was.

    What was broken is kept until all of it is found whole again. Raises NoSuchRun.
    """
    seq, prev = (0, START_OF_CHAIN) if whole else _mark(conn, run_id)[:2]
    head, rows, later_seq = _read(conn, run_id, seq)
    if head is None:
        raise NoSuchRun(str(run_id))
    chain = _Chain(run_id, seq, prev)
    for row in rows:
        chain.follow(row)
    chain.finish(head[0], head[1], later_seq)
    faults = sorted(chain.faults, key=lambda fault: fault.seq)
    with (conn or connection).cursor() as cursor:
        if faults:
            keep_broken(faults[0], conn)
            cursor.execute(_LOOKED, (run_id,))
            return faults
        cursor.execute(_MARK, (chain.seq, chain.link_at_end, run_id, chain.seq))
        if whole:
            cursor.execute(_IS_WHOLE, (run_id,))
    return []


def keep_broken(fault: Fault, conn: Conn | None = None) -> None:
    with (conn or connection).cursor() as cursor:
        cursor.execute(_KEEP_BROKEN, (fault.run_id, fault.seq, fault.what))


def all_runs(conn: Conn | None = None) -> Iterator[UUID]:
    """Every run that has a head or an entry."""
    with (conn or connection).cursor() as cursor:
        cursor.execute(_RUNS)
        yield from (row[0] for row in cursor.fetchall())


class _Chain:
    """Follows the rows of one journal from a verified link on."""

    def __init__(self, run_id: UUID, seq: int, prev: bytes) -> None:
        self.run_id, self.seq = run_id, seq
        self._prevs = {prev}
        self.faults: list[Fault] = []
        self._links = {seq: prev}  # by the seq that carries it
        self._begin_append()

    @property
    def link_at_end(self) -> bytes:
        return self._links[self.seq]

    def fault(self, seq: int, what: str) -> None:
        self.faults.append(Fault(self.run_id, seq, what))

    def follow(self, row: EntryRow) -> None:
        for missing in range(self.seq + 1, row.seq):
            self.fault(missing, "the entry is missing")
            self._whole = False
        self.seq = row.seq
        digest = self._digest(row)
        if digest[:SPOT_BYTES] != row.spot:
            self.fault(row.seq, "the entry was changed: it does not have the digest it was written with")
            self._whole = False
        self._digests.append(digest)
        self._times.append((row.seq, row.recorded_at))
        if row.link is not None:
            self._close_append(row, row.link)

    def finish(self, head_seq: int, head_hash: bytes, later_head_seq: int) -> None:
        """Compares with the head as it was before the rows were read; `later_head_seq` was read after them."""
        for missing in range(self.seq + 1, head_seq + 1):
            self.fault(missing, "the entry is missing")
        if self._digests:
            self.fault(self.seq, "the chain is broken: the end of this entry's append is missing")
        for extra in range(later_head_seq + 1, self.seq + 1):
            self.fault(extra, "the journal's head does not know this entry")
        if head_seq in self._links and self._links[head_seq] != head_hash:
            self.fault(head_seq, "the journal's head has another hash than the chain")

    def _begin_append(self) -> None:
        self._first, self._whole = self.seq + 1, True
        self._digests: list[bytes] = []
        self._times: list[tuple[int, datetime]] = []

    def _close_append(self, row: EntryRow, stored: bytes) -> None:
        made = {link(prev, self.run_id, self._first, row.recorded_at, self._digests) for prev in self._prevs}
        if self._whole and stored not in made:
            which = f"entry {row.seq}" if self._first == row.seq else f"entries {self._first} to {row.seq}"
            self.fault(row.seq, f"the chain is broken: the link does not fit {which} and what came before")
        elif self._whole:
            for seq, _ in (pair for pair in self._times if pair[1] != row.recorded_at):
                self.fault(seq, "the entry was changed: it does not have the time of its append")
        # What is broken is told once: the next append may follow from the link as stored or as it should be.
        self._prevs = {stored} if stored in made or not self._whole else {stored, *made}
        self._links[row.seq] = stored
        self._begin_append()

    def _digest(self, row: EntryRow) -> bytes:
        payload = payload_digest(row.salt, row.body)
        if not row.salt:
            tombstone = _TOMBSTONE.fullmatch(row.body)
            payload = bytes.fromhex(tombstone[1].decode()) if tombstone else bytes(32)
        return entry_digest(row.kind, row.v, row.step, row.settles, row.epoch, row.actor, payload)


def _read(conn: Conn | None, run_id: UUID, after: int) -> tuple[Any, list[EntryRow], int]:
    """The head, then the rows, then the head's last seq again: appends between them are no faults."""
    with (conn or connection).cursor() as cursor:
        cursor.execute(_HEAD, (run_id,))
        head = cursor.fetchone()
        cursor.execute(_ROWS, (run_id, after))
        rows = [EntryRow(*row[:8], *(None if b is None else bytes(b) for b in row[8:])) for row in cursor.fetchall()]
        cursor.execute(_HEAD, (run_id,))
        later = cursor.fetchone()
    return (None if head is None else (head[0], bytes(head[1]))), rows, later[0] if later else 0


def _mark(conn: Conn | None, run_id: UUID) -> tuple[int, bytes, datetime | None]:
    with (conn or connection).cursor() as cursor:
        cursor.execute(_HEAD, (run_id,))
        row = cursor.fetchone()
    if row is None:
        raise NoSuchRun(str(run_id))
    return row[2], bytes(row[3]) if row[3] is not None else START_OF_CHAIN, row[4]


def _payload_faults(run_id: UUID, rows: list[EntryRow], store: PayloadStore | None) -> Iterator[Fault]:
    for row in rows:
        if b'"payload"' not in row.body:
            continue
        try:
            body = decode(row.body)
        except ValueError as error:
            yield Fault(run_id, row.seq, f"the body cannot be read: {error}")
            continue
        for pointer in pointers_in(body):
            try:
                (store or payload_store()).open(pointer)
            except PayloadError as error:
                yield Fault(run_id, row.seq, str(error))
