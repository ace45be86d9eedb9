"""What the relatives of a run have done or may do: its family of forks, and which of their calls equal its own.

Two runs of a family that are about to do the same must not both go unseen. So a run looks at its relatives only when
its own intent is committed: of two that look, at least the later one sees the other. Pure, but for the store that large
arguments lie in, and for who reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from operator import eq
from typing import Any, Protocol
from uuid import UUID

from django.db import connection
from psycopg_pool import ConnectionPool

from journal.append import Conn
from journal.encoding import canonical
from journal.entries import Entry, Kind
from journal.errors import PayloadAltered, PayloadMissing
from journal.read import read_entries
from runs.erased import ERASED
from runs.secrets import SecretUnreadable, opened, seals_in
from runs.slots import Repeat, Slot
from runs.state import RunState

FAMILY = """
SELECT r.id, r.forked_from_id, r.forked_at, r.ended_at IS NOT NULL, h.last_seq
  FROM runs_run r JOIN journal_head h ON h.run_id = r.id WHERE r.lineage = %s
"""
BEGINS = frozenset({Kind.TOOL_CALL, Kind.ASK, Kind.TIMER, Kind.CHILD})
UNREADABLE = "cannot be compared"
Alike = Callable[[Any, Any], bool]


class Store(Protocol):
    def resolve(self, body: dict[str, Any]) -> dict[str, Any]: ...


@dataclass(frozen=True, slots=True)
class Member:
    """A run of a family, as its row and its journal's head say."""

    id: UUID
    forked_from: UUID | None
    forked_at: int | None
    ended: bool
    last_seq: int


class Relations(Protocol):
    """Where relatives are read: the database, or the memory of a test."""

    def family(self, root: UUID) -> Sequence[Member]: ...

    def read_behind(self, run_id: UUID, after: int) -> Sequence[Entry]:
        """As stored: large values are loaded only where they matter."""


def own_from(me: UUID, family: Iterable[Member]) -> dict[UUID, int]:
    """Behind which entry each relative of `me` has what `me` does not have too: in neither's copied part."""
    members = {member.id: member for member in family}
    found = {member.id: member.forked_at or 0 for member in members.values()}
    cut, walk = inf, members.get(me)
    while walk is not None and walk.forked_from is not None:
        cut = min(cut, walk.forked_at or 0)
        found[walk.forked_from] = max(found.get(walk.forked_from, 0), int(cut))
        walk = members.get(walk.forked_from)
    found.pop(me, None)
    return found


def follow(state: RunState, entries: Iterable[Entry]) -> None:
    """Fold on from a frontier. What belongs to a step before it changes nothing."""
    for entry in entries:
        if entry.step is None or entry.step in state.slots or entry.kind in BEGINS:
            state.apply(entry)


@dataclass(slots=True)
class Relatives:
    """What a slice knows of its run's relatives; each look reads only what is new."""

    me: UUID
    root: UUID
    source: Relations
    store: Store
    members: dict[UUID, Member] = field(default_factory=dict)
    states: dict[UUID, RunState] = field(default_factory=dict)

    def look(self) -> None:
        family = self.source.family(self.root)
        begins = own_from(self.me, family)
        self.members = {member.id: member for member in family if member.id != self.me}
        for member in self.members.values():
            state = self.states.setdefault(member.id, RunState(member.id))
            after = max(state.seq, begins[member.id])
            if member.last_seq > after:
                follow(state, self.source.read_behind(member.id, after))

    def slots(self) -> Iterator[tuple[Member, Slot]]:
        for member in self.members.values():
            for slot in self.states[member.id].slots.values():
                yield member, slot

    def repeated_by(self, slot: Slot, first: bool, alike: Alike = eq) -> list[Repeat]:
        """The effects of relatives that this one would repeat, as of the last look. `first`: nothing of it was sent.

        `alike`: whether two values that are not written the same say the same.
        """
        found = []
        for member, theirs in self.slots():
            if not matters(theirs, member.ended, first):
                continue
            unreadable = self.states[member.id].beyond is not None or is_erased(theirs)
            if unreadable or self.same(slot, theirs, alike):
                found.append(Repeat(member.id, theirs.seq, theirs.step, UNREADABLE if unreadable else told(theirs)))
        return sorted(found, key=lambda repeat: (str(repeat.run), repeat.seq))

    def same(self, mine: Slot, theirs: Slot, alike: Alike) -> bool:
        """Equal in what it calls and in what is sent."""
        if mine.kind != theirs.kind or mine.tool != theirs.tool:
            return False
        try:
            return equal(self.sent(mine), self.sent(theirs), alike)
        except (PayloadMissing, PayloadAltered):  # nobody can say: a person looks
            return True

    def sent(self, slot: Slot) -> Any:
        return self.store.resolve({"sent": slot.body.get("input") if slot.kind == "child" else slot.args})["sent"]


def matters(theirs: Slot, ended: bool, first: bool) -> bool:
    """Whether it has acted, may have, or may yet. Who has been sent before looks only for what has, or may have."""
    if theirs.kind not in ("call", "child") or theirs.effect == "read":
        return False
    if theirs.settled:
        return theirs.outcome in ("succeeded", ERASED) or (theirs.kind == "child" and theirs.child is not None)
    if theirs.kind == "child":
        return theirs.child is not None or (first and not ended)
    acting = bool(theirs.attempts) and not theirs.surely_not_done
    return acting or (first and not ended)


def is_erased(slot: Slot) -> bool:
    return slot.kind == "call" and "key" not in slot.body


def told(slot: Slot) -> str:
    """How it stands: its outcome, or its state; of a child that it has been started, however it fared."""
    return "started" if slot.child is not None else slot.outcome or slot.state


def as_of_now(named: Repeat, source: Relations) -> Repeat:
    """What was named, as it stands by now: for whoever decides long after it was asked for."""
    state = RunState(named.run)
    follow(state, source.read_behind(named.run, named.seq - 1))
    slot = state.slots.get(named.step)
    if slot is None or state.beyond is not None or is_erased(slot):
        return replace(named, outcome=UNREADABLE)
    given_up = state.done is not None and not slot.settled and slot.state != "in_doubt"
    return replace(named, outcome="cancelled" if given_up else told(slot))


def identical(mine: Any, theirs: Any) -> bool:
    """Written the same."""
    return canonical(mine) == canonical(theirs)


def equal(mine: Any, theirs: Any, alike: Alike = identical) -> bool:
    """Whether two values are the same: written so, or `alike` once what is sealed in them is opened."""
    if identical(mine, theirs):
        return True
    if any(seals_in(mine)) or any(seals_in(theirs)):
        try:  # sealed under another key, or in one of them alone
            mine, theirs = opened(mine), opened(theirs)
        except SecretUnreadable:
            return True
    return alike(mine, theirs)


def uncovered(found: Iterable[Repeat], named: Iterable[Repeat]) -> list[Repeat]:
    """Those that whoever let it was not told of, or was told of as less than they are by now: what was to be expected
    then has perhaps happened, or surely. `named`: as it was told, when it was asked for."""
    told = {(repeat.run, repeat.step): repeat.weight for repeat in named}
    return [repeat for repeat in found if repeat.weight > told.get((repeat.run, repeat.step), -1)]


@dataclass(frozen=True, slots=True)
class InDatabase:
    """A family as the database has it. None for the connection means Django's default one."""

    conn: Conn | None

    def family(self, root: UUID) -> list[Member]:
        with (self.conn or connection).cursor() as cursor:
            cursor.execute(FAMILY, (root,))
            return [Member(*row) for row in cursor.fetchall()]

    def read_behind(self, run_id: UUID, after: int) -> list[Entry]:
        return read_entries(self.conn, run_id, after=after)


@dataclass(frozen=True, slots=True)
class InPool:
    """The same on a worker's connections."""

    connections: ConnectionPool

    def family(self, root: UUID) -> list[Member]:
        with self.connections.connection() as conn:
            return InDatabase(conn).family(root)

    def read_behind(self, run_id: UUID, after: int) -> list[Entry]:
        with self.connections.connection() as conn:
            return InDatabase(conn).read_behind(run_id, after)
