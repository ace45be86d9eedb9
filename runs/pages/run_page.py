"""What the page of one run shows: the row, the fold of its journal, a window of its entries, one entry whole."""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import connection
from django.utils import timezone

from journal.encoding import decode
from journal.entries import Entry, Kind
from journal.models import Head
from journal.read import read_entries
from journal.verify import VerifiedMark, verify_from_mark
from runs.limits import ordinal
from runs.loops.under_way import UnderWay, answer_under_way
from runs.models import DOUBT_STANDS, ENDED, Run, Status, WorkerSession
from runs.pages.asked import CHAT, Asked
from runs.pages.chat import Chat, chat_of
from runs.pages.crowded import crowd_before
from runs.pages.facts import Pin, Used, model_in, pin_of, used_of
from runs.pages.family import Family, children_named, family_of
from runs.pages.on_the_way import draining_among
from runs.pages.pictures import Loader
from runs.pages.plan import Plan, names_of, plan_of
from runs.pages.relatives import Relatives, relatives_of
from runs.pages.ruler import Ruler, place, ruler
from runs.pages.timeline import Around, Holder, Timeline, timeline
from runs.pages.zones import time_text
from runs.repeated import Repeated, repeated_in
from runs.rest.answers import is_stateless
from runs.slots import Slot
from runs.state import MACHINES, RunState

WINDOW = 200  # entries drawn at once
MOST_PRINTED = 2_000
MOST_REMARKS = 20
PLAIN = Asked()
UNVERIFIED = VerifiedMark(0, None, ok=True)
QUIET = timedelta(seconds=1)

MOST_SAID = 3
STANDS = """
SELECT p.step, p.scope, p.at_once, p.not_before, p.granted_at IS NULL,
       (SELECT count(*) FROM runs_permit o WHERE o.scope = p.scope AND o.key = p.key AND o.granted_at IS NULL
           AND (-o.priority, o.asked_at, o.run_id, o.step) <= (-p.priority, p.asked_at, p.run_id, p.step))
  FROM runs_permit p WHERE p.run_id = %s AND (p.granted_at IS NULL OR p.not_before IS NOT NULL)
"""

RELEASED_BY = {
    Status.QUEUED: "The next free worker takes it.",
    Status.AWAITING_APPROVAL: "Someone who may approve decides.",
    Status.NEEDS_RECONCILIATION: "Someone says, with evidence, whether it happened.",
    Status.WAITING: "Its time comes; no worker is held meanwhile.",
    Status.WAITING_FOR_VERSION: "A worker that serves its release joins.",
    Status.HELD: "An operator resumes it.",
    Status.QUARANTINED: "An operator releases it.",
}


@dataclass(frozen=True, slots=True)
class Lease:
    """Who holds the run. `silent`: the session has not ended, but its lease has lapsed. `draining`: it is on the way to
    a checkpoint, where it stops."""

    session: WorkerSession | None
    live: bool
    silent: bool
    draining: bool = False

    @property
    def lost(self) -> bool:
        return self.session is not None and not self.live

    @property
    def may_be_killed(self) -> bool:
        """Only in a demo, and only a process of this machine."""
        return bool(settings.HOLDFAST_DEMO and self.live and self.session and self.session.host == socket.gethostname())


@dataclass(frozen=True, slots=True)
class Proof:
    """How far the chain was followed, and the journal's end; `seq` 0 where there is no journal."""

    mark: VerifiedMark = UNVERIFIED
    seq: int = 0
    hash: str = ""

    @property
    def to_the_end(self) -> bool:
        return self.mark.ok and self.mark.seq >= self.seq


@dataclass(frozen=True, slots=True)
class RunPage:
    """`entries` is the window drawn, `earlier` the `after=` of the window before it (None at the start). `chat`: where
    it is drawn as a conversation; `arriving`: what has come of an answer that the journal does not have yet; `crowd`:
    that all slots are taken before it."""

    run: Run
    state: RunState
    lease: Lease
    line: Timeline
    last_seq: int
    first_seq: int
    end_seq: int
    now: datetime
    family: Family
    asked: Asked
    proof: Proof
    ruler: Ruler
    plan: Plan
    remarks: Sequence[Entry]
    relatives: Relatives
    chat: Chat | None = None
    arriving: UnderWay | None = None
    crowd: str = ""

    @property
    def repeated(self) -> list[Repeated]:
        """What was done twice in it."""
        return repeated_in(self.run.id, self.state.slots.values())

    @property
    def earlier(self) -> int | None:
        return max(self.first_seq - 1 - WINDOW, 0) if self.first_seq > 1 else None

    @property
    def later(self) -> int | None:
        return self.end_seq if self.end_seq < self.last_seq else None

    @property
    def before_first(self) -> int:
        """The `after` of this window."""
        return self.first_seq - 1

    @property
    def windowed(self) -> bool:
        return self.earlier is not None or self.later is not None

    @property
    def shown_state(self) -> int:
        """The seq that the ruler stands at."""
        return min(self.asked.at or self.last_seq, self.last_seq)

    @property
    def copied_to(self) -> float:
        """On the ruler, in percent: how far a fork's entries are copied ones."""
        return place(min(self.run.forked_at or 1, self.last_seq), self.last_seq)

    @property
    def pin(self) -> Pin:
        return pin_of(self.run, self.state)

    @property
    def used(self) -> list[Used]:
        return used_of(self.run, self.state)

    @property
    def started_by(self) -> str:
        return self.state.started_by

    @property
    def region(self) -> str:
        session = self.lease.session
        return session.region if session is not None and self.lease.live else self.run.region

    @property
    def sender_lost(self) -> frozenset[int]:
        """Of the questions, the seqs of those whose last send was by a worker that lost the run."""
        return frozenset(s.seq for s in self.open_questions if s.attempts and s.attempts[-1].epoch < self.run.epoch)

    @property
    def results_below(self) -> dict[UUID, Slot]:
        """The children that have ended, by their ids."""
        ended = (slot for slot in self.state.slots.values() if slot.kind == "child" and slot.settled)
        return {slot.child: slot for slot in ended if slot.child is not None}

    @property
    def ended(self) -> bool:
        return self.run.status in ENDED

    @property
    def stateless(self) -> bool:
        return is_stateless(self.run)

    @property
    def converses(self) -> bool:
        """Whether a model loop decides it, which is told of every signal."""
        return "stream" in model_in(self.run.release.content)

    @property
    def released_by(self) -> str:
        said = " ".join(filter(None, (released_by(self.run, self.state, self.line.around.places), self.crowd)))
        standing = [] if self.ended else self.family.standing[:MOST_SAID]
        return f"{said} Below it, {'; '.join(standing)}." if standing else said

    @property
    def gate(self) -> str:
        """The scope of the gate that holds it, if one does."""
        why = self.run.reason
        return why.removeprefix("gate ").partition(": ")[0] if self.run.status == "held" and why[:5] == "gate " else ""

    @property
    def open_questions(self) -> list[Slot]:
        """What waits for a person: intents to be approved, or in doubt while no live worker is on them; questions."""
        waiting = ("awaiting_approval",) if self.lease.live else ("awaiting_approval", "in_doubt")
        unsettled = self.state.unsettled() if not self.ended else []
        return [slot for slot in unsettled if slot.state in waiting or slot.kind == "ask"]

    @property
    def doubt_stands(self) -> bool:
        """Whether a call in doubt waits for somebody to say what became of it."""
        return self.run.status in DOUBT_STANDS and not self.lease.live

    @property
    def awaited(self) -> str:
        """The name of the first signal that a step waits for."""
        open_ones = self.state.unsettled() if not self.ended else []
        return next((slot.signal for slot in open_ones if slot.kind == "signal"), "")

    @property
    def outcome(self) -> tuple[str, Any] | None:
        done = self.state.done
        return (
            next(((name, done[name]) for name in ("result", "error", "cancelled") if name in done), None)
            if done
            else None
        )


def stateless_state(run: Run) -> RunState:
    """What its row tells, as a journal would: a stateless run has none."""
    state = RunState(run.id)
    state.agent, state.labels = run.agent, run.labels
    state.input = decode(bytes(run.input or b"null"))
    state.done = decode(bytes(run.ending)) if run.ending is not None else None
    return state


END_OF = {"sleep": "its time", "signal": "the signal {}", "ask": "an answer", "child": "a child's end"}


def listed(parts: Sequence[str], any_of: bool) -> str:
    """`a, b and c`, or `a, b or c`; each once, the many counted."""
    once = list(dict.fromkeys(parts))
    shown = once if len(once) <= MOST_SAID else [*once[: MOST_SAID - 1], f"{len(once) - MOST_SAID + 1} more"]
    *front, last = shown
    return f"{', '.join(front)} {'or' if any_of else 'and'} {last}" if front else last


def released_by(run: Run, state: RunState, places: Mapping[int, str]) -> str:
    """One or a few sentences; a run that waits says what of, step by step. `places`: in line, by step."""
    if run.status == Status.WAITING and places:
        return "Now " + "; ".join(list(places.values())[:MOST_SAID]) + "."
    waits = [slot for slot in state.unsettled() if slot.kind != "call"]
    if run.status == Status.WAITING and waits:
        first = waits[0].decided is not None and waits[0].decided.join == "first"
        return f"Goes on with {listed([END_OF[slot.kind].format(slot.signal) for slot in waits], first)}."
    if run.status == Status.HELD and state.braked is not None:
        return "An operator resumes it, which gives its budget once more."
    if run.status == Status.HELD and run.reason.startswith("gate "):
        return "It goes on by itself when the gate is lifted."
    return RELEASED_BY.get(Status(run.status), "")


def lease_of(run: Run, now: datetime) -> Lease:
    session = run.session
    live = session is not None and session.ended_at is None and session.expires_at > now
    silent = session is not None and session.ended_at is None and session.expires_at + QUIET < now
    return Lease(session, live, silent, live and bool(draining_among([run])))


class Reading:
    """A journal read so far; `refresh` reads on from its last entry, so that a stream folds each entry once."""

    def __init__(self, run_id: UUID) -> None:
        self.entries: list[Entry] = []
        self.state = RunState(run_id)

    def refresh(self) -> Reading:
        for entry in read_entries(connection, self.state.run_id, after=self.state.seq):
            self.entries.append(entry)
            self.state.apply(entry)
        self.state.committed_seq = self.state.seq
        return self

    def page(self, run: Run, asked: Asked = PLAIN, *, since: int | None = None, proof: Proof | None = None) -> RunPage:
        """The newest window, the one after `asked.after`, or the one that holds `asked.seq`; or all from `since` on.

        `proof`: of a moment ago, where the chain need not be followed anew.
        """
        now = timezone.now()
        lease = lease_of(run, now)
        if is_stateless(run):
            self.state = stateless_state(run)
        elif proof is None:
            proof = proof_of(run.id)
        shown = self.entries[since - 1 :] if since is not None else window(self.entries, asked)
        first, end = (shown[0].seq, shown[-1].seq) if shown else (1, 0)
        return RunPage(
            run=run, state=self.state, lease=lease, line=self.line(shown, lease, now, asked.axis),
            last_seq=self.state.seq, first_seq=first, end_seq=end, now=now, family=self.family(run), asked=asked,
            proof=proof or Proof(), ruler=ruler(self.entries, self.state, held=lease.live),
            plan=plan_of(self.state, self.entries), remarks=remarks_in(self.entries), relatives=relatives_of(run),
            chat=chat_of(shown, self.state, Loader(), held=lease.live) if asked.view == CHAT else None,
            arriving=self.arriving(), crowd=crowd_before(run),
        )  # fmt: skip

    def arriving(self) -> UnderWay | None:
        """What has come so far of the answer to the request that is open."""
        attempt = self.state.model_attempt if self.state.done is None else None
        if attempt is None:
            return None
        with connection.cursor() as cursor:
            return answer_under_way(cursor, self.state.run_id, attempt.seq)

    def line(self, shown: Sequence[Entry], lease: Lease, now: datetime, axis: str) -> Timeline:
        steps = {entry.step for entry in shown if entry.step is not None}
        slots = [self.state.slots[step] for step in steps if step in self.state.slots]
        return timeline(
            shown,
            self.state,
            now=now,
            held=lease.live,
            holders=holders_in(shown),
            around=self.around(shown),
            names=names_of(slots, self.entries),
            by=axis,
        )

    def around(self, shown: Sequence[Entry]) -> Around:
        """What rows of other runs and of permits say of these entries' steps."""
        steps = {entry.step for entry in shown if entry.kind == Kind.CHILD}
        slots = [slot for step in steps if step is not None and (slot := self.state.slots.get(step)) is not None]
        limited = any(slot.gate == "limit" for slot in self.state.unsettled())
        places = places_in_line(self.state.run_id) if limited else {}
        return Around(children_named([slot.child for slot in slots if slot.child]), places)

    def family(self, run: Run) -> Family:
        has_children = any(slot.kind == "child" for slot in self.state.slots.values())
        return family_of(run.id, has_parent=run.parent_id is not None, has_children=has_children)


def places_in_line(run_id: UUID) -> dict[int, str]:
    """By step: where it stands in its limit's line now, or when its rate lets it go."""
    with connection.cursor() as cursor:
        cursor.execute(STANDS, [run_id])
        rows = cursor.fetchall()
    return {step: place_text(scope.partition(":")[2], *rest) for step, scope, *rest in rows}


def place_text(tool: str, at_once: int, not_before: float | None, in_line: bool, place: int) -> str:
    if in_line:
        return f"{ordinal(place)} in line: {tool} is limited to {at_once} at once"
    at = datetime.fromtimestamp(not_before or 0.0, UTC)
    return f"{tool} is limited in time: not before {time_text(at, timezone.now())} UTC"


def holders_in(entries: Sequence[Entry]) -> dict[str, Holder]:
    """The sessions that take-over notes name."""
    named = {str(e.body[who]) for e in entries if e.kind == Kind.NOTE for who in ("from", "session") if e.body.get(who)}
    rows = WorkerSession.objects.filter(id__in=named) if named else []
    return {str(row.id): Holder(row.name, row.heartbeat_at) for row in rows}


def window(entries: Sequence[Entry], asked: Asked) -> Sequence[Entry]:
    """For print at most MOST_PRINTED."""
    last, size = len(entries), MOST_PRINTED if asked.all else WINDOW
    after = asked.after
    if after is None:
        newest, seq = max(last - size, 0), asked.seq
        after = newest if seq is None or seq > newest else (max(seq, 1) - 1) // size * size
    return entries[after : after + size]


def proof_of(run_id: UUID) -> Proof:
    """Follows the chain from where it was last verified."""
    mark = verify_from_mark(run_id)
    head = Head.objects.only("last_seq", "last_hash").get(run_id=run_id)
    return Proof(mark, head.last_seq, bytes(head.last_hash).hex())


def remarks_in(entries: Sequence[Entry]) -> list[Entry]:
    """What people wrote beside the journal, the newest first; not what the machines noted."""
    found = [e for e in reversed(entries) if e.kind == Kind.NOTE and e.actor not in MACHINES]
    return found[:MOST_REMARKS]


def default_seq(page: RunPage) -> int:
    """The entry to show when the address names none: what waits for a person, else the last."""
    questions = page.open_questions
    return questions[0].seq if questions else page.last_seq
