"""One entry, whole: what it says, who wrote it, what came of it, its place in the hash chain."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db import connection

from journal.chain import entry_digest, payload_digest
from journal.encoding import decode, tagged
from journal.entries import Entry, Kind
from journal.verify import VerifiedMark
from runs.models import Evidence, Run, WorkerSession
from runs.pages.json_lines import Line, json_lines, pretty
from runs.pages.pointers import pointers_in
from runs.slots import Signal, Slot
from runs.state import RunState, fold

OF_CALLS = (Kind.TOOL_CALL, Kind.ATTEMPT, Kind.OBS, Kind.RECONCILE)
LARGEST_COPY = 256 * 2**10  # characters kept in the page for the clipboard
PROOF = "SELECT salt, link, body FROM journal_entry WHERE run_id = %s AND seq = %s"
# The link that this entry's append follows: of the last entry before it that has one.
PREVIOUS = """SELECT link FROM journal_entry WHERE run_id = %s AND seq < %s AND link IS NOT NULL
    ORDER BY seq DESC LIMIT 1"""
# Of a call's arguments, what it is about: the amount, or whom it reaches.
STANDS_OUT = re.compile(r"(^|_)(amount|cents|total|price|sum|quantity|to|recipient|iban|account|charge)(_|$)", re.I)


@dataclass(frozen=True, slots=True)
class Writer:
    """Whose epoch an entry carries. `name` is empty where no entry tells; `fenced`: the next holder took the run from
    this one, which can write no more."""

    name: str
    fenced: bool


@dataclass(frozen=True, slots=True)
class Late:
    """A result that the journal refused: it came from a worker that had lost the run."""

    outcome: str
    epoch: int
    worker: str
    at: datetime
    adopted_seq: int | None
    lines: list[Line]


@dataclass(frozen=True, slots=True)
class EntryPage:
    """`digest`, `link` and `previous` in hex; `link` is empty when it stands in a later entry of the same append.

    `approved`: the seqs that allowed the call; `binds`: whether each names the digest that the call has. `forkable`:
    whether a fork may begin behind it.
    """

    entry: Entry
    slot: Slot | None
    signal: Signal | None
    writer: Writer
    lines: list[Line]
    copy: str
    pointers: int
    digest: str
    link: str
    previous: str
    mark: VerifiedMark
    approved: list[int]
    binds: bool
    late: list[Late] = field(default_factory=list)
    last: int = 0
    forkable: bool = False

    @property
    def verified(self) -> bool:
        return self.entry.seq <= self.mark.seq

    @property
    def before(self) -> int | None:
        return self.entry.seq - 1 if self.entry.seq > 1 else None

    @property
    def after(self) -> int | None:
        return self.entry.seq + 1 if self.entry.seq < self.last else None

    @property
    def cells(self) -> list[str]:
        """The partial for this kind, by its file name."""
        own = [] if self.entry.is_beyond else [f"runs/entry/{self.entry.kind}.html"]
        return [*own, "runs/entry/other.html"]


def entry_page(run: Run, state: RunState, entries: Sequence[Entry], seq: int, mark: VerifiedMark) -> EntryPage | None:
    """`entries`: the journal from its beginning."""
    entry = next((entry for entry in entries[max(seq - 1, 0) : seq] if entry.seq == seq), None)
    if entry is None:
        return None
    slot = state.slots.get(entry.step) if entry.step is not None else None
    digest, link, previous = proof_of(entry)
    approved, binds = approvals_of(slot, entries)
    copy = pretty(as_answered(entry))
    return EntryPage(
        entry,
        slot,
        next((signal for signal in state.signals if signal.seq == entry.seq), None),
        writer_of(entry, run, entries),
        json_lines(entry.body, marks_of(entry, slot)),
        copy if len(copy) <= LARGEST_COPY else "",
        sum(1 for _ in pointers_in(entry.body)),
        digest.hex(),
        link.hex(),
        previous.hex(),
        mark,
        approved,
        binds,
        late_results(run, entry.step) if entry.step is not None and entry.kind in OF_CALLS else [],
        entries[-1].seq,
        is_fork_point(entries, entry, state),
    )


def is_fork_point(entries: Sequence[Entry], entry: Entry, state: RunState) -> bool:
    """Whether nothing was unsettled when this entry was written: a new run may begin behind it."""
    if entry.kind == Kind.DONE:
        return False
    then = state if state.seq == entry.seq else fold(entry.run_id, entries[: entry.seq])
    return not then.open and then.cancel is None and then.beyond is None


def as_answered(entry: Entry) -> dict[str, Any]:
    """As the API tells it."""
    at = entry.recorded_at.isoformat().replace("+00:00", "Z")
    return {
        "seq": entry.seq, "kind": entry.kind, "body": tagged(entry.body), "step": entry.step, "epoch": entry.epoch,
        "actor": entry.actor, "recorded_at": at,
    }  # fmt: skip


def marks_of(entry: Entry, slot: Slot | None) -> frozenset[str]:
    """The key, and of the arguments what the call is about."""
    args = entry.body.get("args")
    if entry.kind != Kind.TOOL_CALL or not isinstance(args, Mapping):
        return frozenset()
    told = slot.approval.fields if slot is not None and slot.approval is not None else None
    if told:  # the tool says itself what matters
        return frozenset({"key", *(f"args.{name}" for name in told)})
    named = {name for name in args if isinstance(name, str) and STANDS_OUT.search(name)}
    amounts = {name for name in named if isinstance(args[name], int | float)}
    return frozenset({"key", *(f"args.{name}" for name in amounts or named)})


def proof_of(entry: Entry) -> tuple[bytes, bytes, bytes]:
    """The digest of an entry, made from what is stored; its stored link; the stored link before it."""
    with connection.cursor() as cursor:
        cursor.execute(PROOF, (entry.run_id, entry.seq))
        salt, link, body = (bytes(part) if part is not None else b"" for part in cursor.fetchone())
        cursor.execute(PREVIOUS, (entry.run_id, entry.seq))
        row = cursor.fetchone()
    # An erased body keeps its digest in place of the text and the salt that it was taken over.
    payload = payload_digest(salt, body) if salt else bytes.fromhex(entry.body["digest"])
    digest = entry_digest(entry.kind, entry.v, entry.step, entry.settles, entry.epoch, entry.actor, payload)
    return digest, link, bytes(row[0]) if row else b""


def writer_of(entry: Entry, run: Run, entries: Sequence[Entry]) -> Writer:
    """Take-over notes name who held the run before and who since; of the epoch in force the row tells."""
    notes = {
        e.epoch: e.body for e in entries if e.kind == Kind.NOTE and "session" in e.body and e.seq <= entries[-1].seq
    }
    took, lost = notes.get(entry.epoch, {}).get("session"), notes.get(entry.epoch + 1, {}).get("from")
    name = ""
    if entry.epoch == run.epoch and run.session is not None:
        name = run.session.name
    elif took or lost:
        found = WorkerSession.objects.filter(id__in=[took or lost]).only("name").first()
        name = found.name if found is not None else ""
    return Writer(name, lost is not None)


def approvals_of(slot: Slot | None, entries: Sequence[Entry]) -> tuple[list[int], bool]:
    if slot is None or slot.approval is None:
        return [], False
    said = [e for e in entries[slot.seq :] if e.kind == Kind.APPROVAL and e.step == slot.step]
    given = [e for e in said if e.body.get("verdict") in ("granted", "edited")]
    return [e.seq for e in given], all(e.body.get("digest") == slot.approval.digest for e in given)


def late_results(run: Run, step: int) -> list[Late]:
    rows = Evidence.objects.filter(run=run, step=step).select_related("session").order_by("id")[:20]
    return [
        Late(
            row.outcome,
            row.epoch,
            row.session.name if row.session else "",
            row.recorded_at,
            row.adopted_seq,
            json_lines(decode(bytes(row.body))),
        )
        for row in rows
    ]
