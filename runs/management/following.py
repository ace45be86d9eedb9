"""A run's journal in a terminal: its steps as a table of contents, one line an entry, and what is new as it lands."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any
from uuid import UUID

from django.utils import timezone

from journal.entries import Entry, Kind
from runs.management.arguments import STYLES, iso, span
from runs.models import DOUBT_STANDS, Run, Status
from runs.pages.axis import FOLD_SECONDS
from runs.pages.crowded import crowd_before
from runs.pages.run_page import Reading, holders_in, lease_of, released_by
from runs.pages.timeline import Gap, Group, Row, timeline
from runs.queries import state_of
from runs.rest.answers import waits_of
from runs.rest.schemas import Wait
from runs.short_ids import short_id
from runs.slots import Slot
from runs.state import RunState
from terminal.screen import Cell, Screen, Styled

FIRST_LOOK, SLOWEST_LOOK = 0.05, 0.4  # seconds between two looks at the journal
LOOKS = {
    "call": "green", "error": "red", "ask": "yellow", "recon": "bold yellow", "pending": "bold yellow", "open": "cyan",
    "plan": "blue", "timer": "dim",
}  # fmt: skip
OUTCOMES = {
    "succeeded": "green", "failed": "red", "denied": "red", "expired": "red", "cancelled": "dim",
    "in_doubt": "bold yellow", "awaiting_approval": "yellow", "pending": "cyan",
}  # fmt: skip


def journal_lines(run: Run, reading: Reading, after: int) -> Iterator[tuple[Cell, ...]]:
    """Steps with their entries behind seq `after`, as a person reads them: gaps and long waits between."""
    now, state = timezone.now(), reading.state
    shown = reading.entries[after:]
    line = timeline(shown, state, now=now, held=lease_of(run, now).live, holders=holders_in(shown))
    for group in line.groups:
        yield heading(group, state)
        before: Row | None = None
        for row in group.rows:
            if row.gap is not None:
                yield gap_line(row.gap)
            elif before is not None and (waited := wait_between(before, row)):
                yield waited
            yield row_line(row)
            before = row


def heading(group: Group, state: RunState) -> tuple[Cell, ...]:
    if not group.number:
        return (Styled(group.title, "bold"),)
    slot = state.slots.get(group.number)
    told: list[Cell] = [Styled(f"step {group.number}", "bold"), Styled(group.title, "bold")]
    if slot is not None:
        said = slot.outcome or slot.state
        told += [
            slot.effect or None,
            Styled(said.replace("_", " "), OUTCOMES.get(said, "")),
            took(slot),
            slot.key or None,
        ]
    return tuple(cell for cell in told if cell is not None)


def took(slot: Slot) -> str | None:
    """From the first send to the outcome."""
    if slot.obs_at is None:
        return None
    began = slot.attempts[0].at if slot.attempts else slot.at
    return span((slot.obs_at - began).total_seconds())


def row_line(row: Row, whose: Cell = "") -> tuple[Cell, ...]:
    e = row.entry
    lasted = span(row.seconds) if row.seconds is not None else ""
    flag = Styled(f"[{row.flag}]", "bold yellow") if row.flag else None
    kind = Styled(f"{e.kind:<9}", LOOKS.get(row.look, ""))
    at = Styled(f"{e.recorded_at:%H:%M:%S} {lasted:>8}", "dim")
    cells: list[Cell] = [f"{e.seq:>6}", at, kind]
    return (*cells, *([whose] if whose else []), *([flag] if flag else []), row.text)


def gap_line(gap: Gap) -> tuple[Cell, ...]:
    who = f"{gap.lost.name if gap.lost else 'a worker'} → {gap.taker.name if gap.taker else 'another'}"
    text = f"  ── {span(gap.seconds)} held by nobody; taken over under epoch {gap.epoch} ({who})"
    return (Styled(text, "bold magenta"),)


def wait_between(before: Row, row: Row) -> tuple[Cell, ...] | None:
    seconds = (row.entry.recorded_at - before.entry.recorded_at).total_seconds()
    return (Styled(f"       ⋯ {span(seconds)} later", "dim"),) if seconds > FOLD_SECONDS else None


def entry_row(row: Row, state: RunState) -> tuple[Cell, ...]:
    """For a script: seq, recorded at, step, kind, tool, effect class, key, outcome, seconds, actor, text."""
    e = row.entry
    slot = state.slots.get(e.step) if e.step is not None else None
    whose = (slot.tool, slot.effect, slot.key, slot.outcome or slot.state) if slot else ("", "", "", "")
    lasted = "" if row.seconds is None else f"{row.seconds:.3f}"
    return (e.seq, iso(e.recorded_at), e.step, e.kind, *whose, lasted, e.actor, row.text)


def script_rows(run: Run, reading: Reading, after: int) -> Iterator[tuple[Cell, ...]]:
    now = timezone.now()
    shown = reading.entries[after:]
    line = timeline(shown, reading.state, now=now, held=lease_of(run, now).live, holders={})
    rows = sorted((row for group in line.groups for row in group.rows), key=lambda row: row.entry.seq)
    return (entry_row(row, reading.state) for row in rows)


# -- what it waits for ------------------------------------------------------------------------------------------------


def standing(run: Run, state: RunState) -> str:
    """One line: what the run does now, or what it waits for."""
    if run.status != Status.RUNNING:
        return f"{run.status}: {run.reason}" if run.reason else str(run.status)
    under_way = [f"{slot.tool} (step {slot.step})" for slot in state.unsettled()]
    doing = "the model decides" if state.model_attempt else ", ".join(under_way) or "decides"
    return f"{run.session.name if run.session else 'a worker'}: {doing}"


def pending_lines(run: Run) -> Iterator[tuple[Cell, ...]]:
    """What is not settled, each with what releases it; then why the run stands."""
    for wait in waits_of(run):
        state = "waits" if wait.kind != "call" else wait.state.replace("_", " ")
        if run.status == Status.RUNNING and wait.state == "in_doubt":  # its worker is on it
            state = "under way"
        due = f", until {wait.due:%Y-%m-%d %H:%M:%S} UTC" if wait.due else ""
        since = span((timezone.now() - wait.since).total_seconds())
        yield (
            Styled(state, "yellow"),
            f"step {wait.step}, {wait.kind}: {wait.what}, for {since}{due}.",
            wait.released_by,
        )
        if hint := hint_for(run, wait):
            yield "     ", Styled(hint, "cyan")
    if run.reason:
        yield Styled(str(run.status), STYLES.get(Status(run.status), "")), run.reason
    if released := released_by(run, state_of(run.id), {}):
        yield (Styled(released, "dim"),)
    if crowd := crowd_before(run):
        yield (Styled(crowd, "dim"),)


def hint_for(run: Run, wait: Wait) -> str:
    """The command that releases it, if one does."""
    name = short_id(run.id)
    match wait.kind, wait.state:
        case "call", "awaiting_approval":
            return f"manage.py approve {name} {wait.seq}"
        case "call", "in_doubt" if run.status in DOUBT_STANDS:
            return f"manage.py reconcile {name} {wait.seq} VERDICT --evidence …"
        case "ask", _:
            return f"manage.py answer {name} {wait.seq} VALUE"
        case "signal", _:
            return f"manage.py signal {name} {wait.what}"
        case "child", _ if wait.child is not None:
            return f"manage.py run {short_id(wait.child)}"
    return ""


# -- following --------------------------------------------------------------------------------------------------------


def follow(screen: Screen, run_id: UUID, rests: Callable[[Run], bool], reading: Reading | None = None) -> Run:
    """Tells each entry as it lands until `rests(run)`; below, what the run is at."""
    reading = reading or Reading(run_id)
    told, pause = reading.state.seq, FIRST_LOOK
    with live_line(screen) as live:
        while True:
            run = Run.objects.select_related("release", "session").get(id=run_id)  # before the journal: never newer
            reading.refresh()
            if reading.state.seq > told:
                tell_new(screen, run, reading, told)
                told, pause = reading.state.seq, FIRST_LOOK
            if rests(run) and run.as_of_seq <= told:
                return run
            if live is not None:
                live.update(screen.styled(standing(run, reading.state)))
            time.sleep(pause)
            pause = min(pause * 1.3, SLOWEST_LOOK)


def live_line(screen: Screen) -> AbstractContextManager[Any]:
    return screen.console.status("") if screen.terminal else nullcontext(None)


def tell_new(screen: Screen, run: Run, reading: Reading, after: int) -> None:
    if not screen.terminal:
        for cells in script_rows(run, reading, after):
            screen.say(*cells)
        screen.flush()
        return
    now = timezone.now()
    shown = reading.entries[max(after - 1, 0) :]  # with the last one told: a take-over is seen by what came before
    line = timeline(shown, reading.state, now=now, held=lease_of(run, now).live, holders=holders_in(shown))
    rows = sorted((row for group in line.groups for row in group.rows), key=lambda row: row.entry.seq)
    for row in rows[1 if after else 0 :]:
        if row.gap is not None:
            screen.say(*gap_line(row.gap))
        if row.entry.kind not in QUIET:
            screen.say(*row_line(row, of_step(row.entry, reading.state)), cut=True)


QUIET = (Kind.PLAN, Kind.DONE)  # a decision shows in what it made, and the ending is told by who follows


def of_step(entry: Entry, state: RunState) -> Cell:
    """Which step it belongs to; an intent says its tool itself."""
    slot = state.slots.get(entry.step) if entry.step is not None else None
    if slot is None:
        return ""
    return Styled(f"step {entry.step}" if entry.kind == Kind.TOOL_CALL else f"step {entry.step} {slot.tool}", "bold")
