"""Lifts a drain: `manage.py undrain --scope release:refund-desk@7`."""

from __future__ import annotations

from typing import ClassVar

import click

from recovery.drain_api import drain_detail
from recovery.drains import in_force, lift_drain
from recovery.errors import DrainNotFound, RecoveryError
from recovery.management.commands.drain import phase_cell
from recovery.models import Drain
from runs.access import shell_actor
from runs.management.arguments import RunsCommand, as_json
from terminal.command import HELP, Refused, exit_codes
from terminal.screen import Screen


@click.command("undrain", context_settings=HELP, epilog=exit_codes())
@click.option("--scope", metavar="SCOPE|ID", help="As it was drained, or the drain's id; without it the only one.")
@click.option("--reason", default="lifted at the shell", show_default=True, help="Kept with the drain and its gate.")
@as_json
@click.pass_obj
def words(screen: Screen, /, scope: str | None, reason: str, as_json: bool) -> None:
    """Lift a drain: what waits at its gate goes on. One that is under way is called off. The last line is its id."""
    drain = lift_drain(drain_id=named(scope).pk, reason=reason, actor=shell_actor())
    if as_json:
        screen.json(drain_detail(drain).model_dump(mode="json"))
        return
    screen.say(drain.scope, phase_cell(drain), "lifted")
    screen.line(str(drain.pk))


def named(scope: str | None) -> Drain:
    """Raises DrainNotFound, and Refused where several could be meant."""
    drains = list(in_force())
    if scope is not None:
        wanted = [drain for drain in drains if scope in (drain.scope, str(drain.pk))]
        if not wanted:
            raise DrainNotFound(f"(in force: {listed(drains)})")
        return wanted[0]
    if not drains:
        raise DrainNotFound("(none is in force)")
    if len(drains) > 1:
        everything = [drain for drain in drains if drain.scope == "all"]
        if not everything:
            raise Refused(f"Several drains are in force; name one with --scope: {listed(drains)}.")
        return everything[0]
    return drains[0]


def listed(drains: list[Drain]) -> str:
    return ", ".join(f"{drain.scope} ({drain.pk})" for drain in drains) or "none"


class Command(RunsCommand):
    help = "Lift a drain: what waits at its gate goes on."
    refusals: ClassVar = (*RunsCommand.refusals, RecoveryError)
    words = words
