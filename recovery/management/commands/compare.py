"""Sets a fork beside what it was forked from: `manage.py compare r-7K3M9Q2A`."""

from __future__ import annotations

from typing import ClassVar

import click

from recovery.errors import CannotFork, RecoveryError
from recovery.forks_compared import COPIED, EDITED, EQUAL, StepPair, forks_compared
from runs.management.arguments import RunParam, RunsCommand, the_run
from runs.models import Run
from runs.queries import entries_of, find_run
from runs.slots import Slot
from runs.values import line
from terminal.command import FAILED, HELP, exit_codes
from terminal.screen import Cell, Column, Screen, Styled

STEPS = (
    Column("step", keep=True, right=True), Column("", keep=True), Column("the run", keep=True),
    Column("the other", keep=True), Column("in what", keep=True),
)  # fmt: skip
ALIKE = (COPIED, EQUAL)
STYLES = {EDITED: "yellow", COPIED: "dim", EQUAL: "green"}


@click.command("compare", context_settings=HELP, epilog=exit_codes(exit_1="they differ"))
@the_run
@click.argument("other", type=RunParam(), required=False)
@click.pass_obj
def words(screen: Screen, /, run: str, other: str | None) -> int:
    """Compare a fork with what it was forked from, or with another run of its family, step by step."""
    mine = find_run(run)
    theirs = find_run(other) if other is not None else source_of(mine)
    found = forks_compared(entries_of(mine.id), entries_of(theirs.id))
    screen.table(STEPS, map(row_of, found.steps))
    screen.line(f"Both have the entries 1 to {found.at}.")
    return 0 if all(pair.how in ALIKE for pair in found.steps) else FAILED


def source_of(run: Run) -> Run:
    """Raises CannotFork."""
    if run.forked_from is None:
        raise CannotFork("It is no fork: name the run to compare it with.")
    return run.forked_from


def row_of(pair: StepPair) -> list[Cell]:
    how = Styled(pair.how, STYLES.get(pair.how, "bold"))
    return [str(pair.step), how, told(pair.fork), told(pair.source), ", ".join(pair.differs)]


def told(slot: Slot | None) -> str:
    return "" if slot is None else f"{slot.tool}({line(slot.args, 60)}) {slot.outcome or slot.state}"


class Command(RunsCommand):
    help = "Compare a fork with its source, step by step."
    refusals: ClassVar = (*RunsCommand.refusals, RecoveryError)
    words = words
