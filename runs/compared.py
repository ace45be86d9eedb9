"""What was decided beside what would be decided now. One comparison for the engine, for replays and for tests. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

from journal.encoding import canonical, decode, encode
from journal.entries import Entry, Kind
from runs.moves import Decided, as_record
from runs.secrets import SecretUnreadable, opened, seals_in
from runs.slots import Decision, Slot

Records = list[dict[str, Any]]
# Where an agent's code raised: the line moves with any edit above it, and changes nothing.
LINE = re.compile(r" \([^()\s]+:\d+\)$")


class Diverged(Exception):
    """The code decides otherwise than the journal says."""

    def __init__(self, seq: int, recorded: Any, attempted: Any) -> None:
        super().__init__(f"entry {seq}: recorded {recorded}, attempted {attempted}")
        self.seq, self.recorded, self.attempted = seq, recorded, attempted


class Judge(Protocol):
    """Hears of each decision that is made again, in the journal's order, with the recorded one."""

    def begins(self, seq: int) -> None:
        """The agent's code is about to decide what entry `seq` decided; of what is not recorded yet, the next one."""

    def decision(self, made: Decision, slots: Mapping[int, Slot], attempted: Decided) -> None: ...

    def end(self, done: Entry, attempted: Decided) -> None: ...


class Strict:
    """Raises Diverged at the first decision that is another."""

    def begins(self, seq: int) -> None:
        """Whoever is strict does not look at the clock."""

    def decision(self, made: Decision, slots: Mapping[int, Slot], attempted: Decided) -> None:
        recorded, given = recorded_moves(made, slots), given_moves(attempted)
        if not same_decision(recorded, given, made.join, attempted.join):
            raise Diverged(slots[made.steps[0]].seq, shown(recorded, made.join), shown(given, attempted.join))

    def end(self, done: Entry, attempted: Decided) -> None:
        recorded, given = recorded_end(done), given_moves(attempted)
        if not same_end(recorded, given):
            raise Diverged(done.seq, [recorded], given)


def recorded_moves(made: Decision, slots: Mapping[int, Slot]) -> Records:
    return [slots[step].recorded for step in made.steps]


def given_moves(attempted: Decided) -> Records:
    return [as_record(move) for move in attempted.moves]


def same_decision(recorded: Records, given: Records, join: str, given_join: str) -> bool:
    """Compared as they read back: an Enum or a dataclass in the arguments comes out of the journal as a plain value.
    One by one, so that the path in the description of what cannot be kept is the same."""
    return join == given_join and len(recorded) == len(given) and all(map(alike, recorded, given))


def alike(recorded: dict[str, Any], attempted: dict[str, Any]) -> bool:
    if recorded == attempted:
        return True
    again = decode(encode(attempted))
    return canonical(recorded) == canonical(again) or same_opened(recorded, again)


def same_opened(recorded: dict[str, Any], again: dict[str, Any]) -> bool:
    """A child's input is sealed where its agent says so, which the parent's code does not know."""
    try:
        return any(seals_in(recorded)) and canonical(opened(recorded)) == canonical(opened(again))
    except SecretUnreadable:
        return False


def shown(records: Records, join: str) -> Records:
    return [{"first": records}] if join == "first" else records


# -- the end ----------------------------------------------------------------------------------------------------------


def done_of(entries: Sequence[Entry]) -> Entry | None:
    """The journal's DONE. Only what is never folded follows it."""
    for entry in reversed(entries):
        if entry.kind == Kind.DONE:
            return entry
        if entry.kind != Kind.NOTE:
            return None
    return None


def end_of(entries: Sequence[Entry]) -> Entry | None:
    """The DONE that the agent's own code decided, if the run has one."""
    done = done_of(entries)
    return done if done is not None and ("result" in done.body or "error" in done.body) else None


def seen_by(done: Entry, times: Sequence[datetime]) -> int:
    """The last entry that was committed when the end was decided: what goes in one append has one time."""
    return next((seq for seq in range(done.seq - 1, 0, -1) if times[seq - 1] < done.recorded_at), 1)


def recorded_end(done: Entry) -> dict[str, Any]:
    body = done.body
    return {"finish": body["result"]} if "result" in body else {"fail": body["error"]["reason"]}


def same_end(recorded: dict[str, Any], given: Records) -> bool:
    if len(given) != 1:
        return False
    if isinstance(recorded.get("fail"), str) and isinstance(given[0].get("fail"), str):
        return LINE.sub("", recorded["fail"]) == LINE.sub("", given[0]["fail"])
    return alike(recorded, given[0])
