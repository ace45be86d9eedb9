"""What pages show of a drain: its clock and meter, its phases, what is in the way, and how it ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from recovery.drains import UNDER_WAY, Preview, Progress
from recovery.handed_over import went_on
from recovery.in_flight import BETWEEN, CALL, MODEL, STATELESS, InFlight
from recovery.models import Drain, Phase
from runs.access import OutsideScope, Person, agents_of, sees
from runs.gates import check_reach
from runs.templatetags.console import STATUSES, duration

MOST_ROWS = 50
DOES = {CALL: "In tool call", MODEL: "Thinking", BETWEEN: "Between steps", STATELESS: "Stateless run"}
PIECES = (  # of a meter, in this order: what a run does, look, words behind the number
    (CALL, "draining", "in a tool call"),
    (MODEL, "running", "asking a model"),
    (STATELESS, "queued", "stateless"),
    (BETWEEN, "off", "between steps"),
)
OUTCOMES = {  # glyph and word
    Phase.STOPPING: ("draining", "In progress"),
    Phase.REACHING: ("draining", "In progress"),
    Phase.DONE: ("done", "Empty in time"),
    Phase.HANDED_OVER: ("warn", "Handed over"),
    Phase.LIFTED: ("off", "Called off"),
}


@dataclass(frozen=True, slots=True)
class Piece:
    """Of a meter, `x` and `width` in thousandths."""

    look: str
    word: str
    count: int
    x: int = 0
    width: int = 0


@dataclass(frozen=True, slots=True)
class PhaseLine:
    """`at`: when it began, None: it has not. `seconds`: how long it took, None: it goes on, or has no length."""

    name: str
    at: datetime | None
    seconds: float | None
    current: bool


@dataclass(frozen=True, slots=True)
class Panel:
    """A drain that is in force, as one person sees it."""

    told: Progress
    may_steer: bool

    @property
    def drain(self) -> Drain:
        return self.told.drain

    @property
    def under_way(self) -> bool:
        return self.drain.phase in UNDER_WAY

    @property
    def look(self) -> str:
        return outcome_of(self.drain)[0]

    @property
    def word(self) -> str:
        return outcome_of(self.drain)[1]

    @property
    def clock(self) -> str:
        return clock_text(self.told.seconds_left)

    @property
    def took(self) -> float | None:
        return took(self.drain)

    @property
    def inbox_query(self) -> str:
        """To the inbox's filters: what of them the scope can say."""
        kind, _, what = self.drain.scope.partition(":")
        given = {"agent": what.partition("@")[0]} if kind in ("agent", "release") else {"tool": what}
        return "&" + urlencode(given) if kind in ("agent", "release", "tool") else ""

    @property
    def total(self) -> int:
        """Of what the meter is: some may have been claimed before their worker heard of the gate."""
        return max(self.told.began_with or 0, self.told.remaining)

    @property
    def reached(self) -> int | None:
        return None if self.told.began_with is None else self.total - self.told.remaining

    @property
    def pieces(self) -> list[Piece]:
        counts = Counter(one.does for one in self.told.in_flight)
        found = [Piece("done", "at a checkpoint", self.reached)] if self.reached else []
        if self.told.left_behind:
            found.append(Piece("lost", "left by a lost worker", len(self.told.left_behind)))
        return laid_out([*found, *(Piece(look, word, counts[does]) for does, look, word in PIECES if counts[does])])

    @property
    def rows(self) -> list[Row]:
        return [Row(one, self.drain.deadline_at, self.told.as_of) for one in self.told.in_flight[:MOST_ROWS]]

    @property
    def more(self) -> int:
        return max(self.told.remaining - MOST_ROWS, 0)

    @property
    def beside(self) -> list[tuple[str, str, int]]:
        """Runs in the scope that no worker holds: look, word, how many."""
        return beside(self.told.parked)

    @property
    def phases(self) -> list[PhaseLine]:
        return phases_of(self.drain)

    @property
    def place(self) -> bool:
        """Whether its runs go on at other workers."""
        return self.drain.scope.startswith(("worker:", "region:"))


@dataclass(frozen=True, slots=True)
class Row:
    one: InFlight
    deadline: datetime
    as_of: datetime

    @property
    def phase(self) -> str:
        return DOES[self.one.does]

    @property
    def age(self) -> float:
        return max((self.as_of - self.one.since).total_seconds(), 0.0)

    @property
    def in_time(self) -> bool:
        return self.one.ends_in_time(self.deadline)


@dataclass(frozen=True, slots=True)
class Past:
    """A line of history."""

    drain: Drain
    whole: bool  # whether its numbers are this person's to see
    left: int | None  # runs that were handed over, of those that this person sees
    went_on: int = 0

    @property
    def look(self) -> str:
        return outcome_of(self.drain)[0]

    @property
    def word(self) -> str:
        return outcome_of(self.drain)[1]

    @property
    def phases(self) -> list[PhaseLine]:
        return phases_of(self.drain)

    @property
    def reached(self) -> str:
        if not self.whole or self.left is None or self.drain.phase == Phase.LIFTED:
            return ""
        most = max(self.drain.in_flight, self.left)
        return f"{most - self.left} of {most}"

    @property
    def took(self) -> float | None:
        return took(self.drain)


def took(drain: Drain) -> float | None:
    """Seconds; None while it is under way."""
    return None if drain.ended_at is None else (drain.ended_at - drain.created_at).total_seconds()


def past_of(drain: Drain, user: Person) -> Past:
    left = None if drain.ended_at is None else seen_of(drain.report, user)
    return Past(drain, agents_of(user) is None, None if left is None else len(left), len(went_on(drain, left or ())))


def outcome_of(drain: Drain) -> tuple[str, str]:
    return OUTCOMES[Phase(drain.phase)]


def panel_of(told: Progress, user: Person, permission: str) -> Panel:
    return Panel(told, may_steer(user, told.drain.scope, permission))


def may_steer(user: Person, scope: str, permission: str) -> bool:
    if not user.has_perm(permission):
        return False
    try:
        check_reach(user, scope)
    except OutsideScope:
        return False
    return True


def clock_text(seconds: float) -> str:
    """06:12, or 1:06:12."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes:02}:{rest:02}"


def span_text(seconds: float) -> str:
    """30 s, 10 m, 4 h; with a rest as it is written elsewhere."""
    for size, unit in ((3600, "h"), (60, "m")):
        if seconds >= size and seconds % size == 0:
            return f"{seconds // size:.0f} {unit}"
    return f"{seconds:g} s" if seconds < 60 else duration(seconds)


def laid_out(pieces: Sequence[Piece]) -> list[Piece]:
    total, x, found = sum(piece.count for piece in pieces), 0, []
    for n, piece in enumerate(pieces):
        width = 1000 - x if n == len(pieces) - 1 else max(round(1000 * piece.count / total), 8)
        found.append(Piece(piece.look, piece.word, piece.count, x, max(width - 3, 5)))
        x += width
    return found


def beside(parked: Mapping[str, int]) -> list[tuple[str, str, int]]:
    return [(*STATUSES[status], count) for status in STATUSES if (count := parked.get(status, 0))]


NAMES = {Phase.STOPPING: "Stop claiming", Phase.REACHING: "Reach checkpoints"}
ENDS = {Phase.DONE: "Empty", Phase.HANDED_OVER: "Handed over", Phase.LIFTED: "Called off"}


def phases_of(drain: Drain) -> list[PhaseLine]:
    """The two ways there and the end, with their times as the report keeps them."""
    seconds: Mapping[str, float] = drain.report.get("seconds", {})
    at: datetime | None = drain.created_at
    lines = []
    for phase, name in NAMES.items():
        took, current = seconds.get(phase), drain.phase == phase
        lines.append(PhaseLine(name, at if current or took is not None else None, took, current))
        at = at + timedelta(seconds=took) if at is not None and took is not None else None
    end = ENDS.get(Phase(drain.phase), "Empty, or handed over")
    return [*lines, PhaseLine(end, drain.ended_at, None, drain.ended_at is not None)]


def to_do(found: Preview) -> str:
    """The act and its count, as the button says it."""
    runs, workers = len(found.in_flight), len(found.workers)
    return f"Drain {runs} run{'' if runs == 1 else 's'} on {workers} worker{'' if workers == 1 else 's'}"


@dataclass(frozen=True, slots=True)
class Blast:
    """What a drain would touch, in lines."""

    told: Preview
    seconds: float

    @property
    def button(self) -> str:
        return to_do(self.told)

    @property
    def span(self) -> str:
        """Until the deadline: `10 m`."""
        return span_text(self.seconds)

    @property
    def doing(self) -> list[tuple[str, int, InFlight]]:
        """Words, how many runs, and which of them has been at it longest."""
        found = []
        for does, _, word in PIECES:
            runs = [one for one in self.told.in_flight if one.does == does]
            if runs:
                found.append((word, len(runs), min(runs, key=lambda one: one.since)))
        return found

    @property
    def beside(self) -> list[tuple[str, str, int]]:
        return beside(self.told.parked)

    @property
    def stranded(self) -> int:
        return sum(one.runs + one.queued + one.waiting for one in self.told.nowhere)

    @property
    def new_runs(self) -> int | None:
        """How many come until the deadline, at the rate of the last minutes."""
        return None if self.told.arrivals is None else round(self.told.arrivals * self.seconds)

    @property
    def place(self) -> bool:
        return self.told.scope.startswith(("worker:", "region:"))


def seen_of(report: Mapping[str, Any], user: Person) -> list[Mapping[str, Any]]:
    """The runs that were handed over, within the viewer's scope."""
    return [one for one in report.get("runs", ()) if sees(user, str(one.get("agent", "")))]
