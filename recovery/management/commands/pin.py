"""Moves a run to another release: `manage.py pin r-7K3M9Q2A --release refund-desk@8 --reason 'v7 is wrong'`."""

from __future__ import annotations

from typing import ClassVar

import click

from recovery.errors import RecoveryError
from recovery.models import Replay
from recovery.pin_api import verdict_out
from recovery.pins import COMPATIBLE, judge_pin, reasons_of, repin_run
from runs.access import shell_actor
from runs.errors import ReasonMissing
from runs.management.arguments import RunsCommand, as_json, reason_option, tell_run, the_run
from runs.queries import find_run
from terminal.command import FAILED, HELP, exit_codes
from terminal.screen import Column, Screen

REASONS = (Column("seq", keep=True, right=True), Column("because", keep=True))


@click.command(
    "pin", context_settings=HELP, epilog=exit_codes(exit_1="with --dry-run: it may not be moved; else nobody said yes")
)
@the_run
@click.option("--release", required=True, help="Of the run's agent: a version, AGENT@VERSION, or a digest.")
@reason_option("")
@click.option("--dry-run", is_flag=True, help="Judge only; nothing of the run changes.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@as_json
@click.pass_obj
def words(screen: Screen, /, run: str, release: str, reason: str, dry_run: bool, yes: bool, as_json: bool) -> int:
    """Move a run to another release of its agent.

    A worker that serves the release decides the whole journal again first, without any effect. Only if it decides as
    it is recorded is the run moved: PIN is written, and approvals that it waits for are asked anew.
    """
    found = find_run(run)
    if not dry_run and not reason.strip():
        raise ReasonMissing
    judged = judge_pin(run_id=found.id, release=release, actor=shell_actor())
    if dry_run:
        if as_json:
            screen.json(verdict_out(judged).model_dump(mode="json"))
        else:
            tell_verdict(screen, judged)
        return 0 if judged.verdict == COMPATIBLE else FAILED
    if screen.interactive and not yes and judged.verdict == COMPATIBLE:
        tell_verdict(screen, judged)
        if not screen.sure(f"Move the run to {judged.release}?"):
            screen.note("Nothing was written.")
            return FAILED
    moved = repin_run(run_id=found.id, release=release, reason=reason, actor=shell_actor(), judged=judged.pk)
    tell_run(screen, moved, as_json)
    return 0


def tell_verdict(screen: Screen, judged: Replay) -> None:
    """The last line is the verdict."""
    rows = ((str(each["seq"] or ""), str(each["says"])) for each in reasons_of(judged))
    screen.table(REASONS, rows, empty="Every recorded decision would be made again.")
    screen.line(judged.error or judged.verdict)


class Command(RunsCommand):
    help = "Move a run to another release of its agent."
    refusals: ClassVar = (*RunsCommand.refusals, RecoveryError)
    words = words
