"""Kills workers under runs and says whether every promise was kept: `manage.py chaos --seconds 60`."""

from __future__ import annotations

import os
from typing import Any

import click

from recovery.chaos import Report, rehearse
from recovery.errors import RecoveryError
from runs.errors import RunsError
from runs.management.arguments import HELP, AgentParam, strict_value
from runs.registry import AgentsUnusable
from terminal.command import FAILED, TerminalCommand, exit_codes
from terminal.screen import Screen

SMALL_REFUNDS = '{"order_id": "o-{n}", "amount_cents": 100}'


@click.command("chaos", context_settings=HELP, epilog=exit_codes(exit_1="a promise was broken"))
@click.option("--seconds", type=click.FloatRange(0, min_open=True), default=15.0, show_default=True,
              help="How long workers are killed.")  # fmt: skip
@click.option("--runs", type=click.IntRange(1, 10_000), default=20, show_default=True)
@click.option("--every", type=click.FloatRange(0, min_open=True), default=3.0, show_default=True,
              help="Seconds between two kills.")  # fmt: skip
@click.option("--patience", type=click.FloatRange(0), default=60.0, show_default=True,
              help="Seconds until all runs must rest.")  # fmt: skip
@click.option("--agent", type=AgentParam(), default="refund-desk", show_default=True)
@click.option("--input", "template", default=SMALL_REFUNDS, metavar="JSON", show_default=True,
              help="{n} becomes the run's number.")  # fmt: skip
@click.option("--ledger", default=lambda: os.environ.get("HOLDFAST_PAYMENTS_URL"), metavar="URL",
              help="Where its effects can be counted by key (HOLDFAST_PAYMENTS_URL).")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="The report as strict JSON.")
@click.pass_obj
def words(screen: Screen, /, template: str, runs: int, as_json: bool, **how: Any) -> int | None:
    """Start runs, kill a worker of this machine now and then, and check: all rest, nothing was done twice."""
    try:
        inputs = [strict_value(template.replace("{n}", str(n))) for n in range(1, runs + 1)]
    except (ValueError, RecursionError) as error:
        raise click.BadParameter(f"this is not JSON: {error}", param_hint="'--input'") from error
    report = rehearse(inputs=inputs, say=screen.note if as_json else screen.line, **how)
    if as_json:
        screen.json(as_document(report))
    else:
        tell(screen, report, counted=bool(how["ledger"]))
    return FAILED if report.broken else None


def as_document(report: Report) -> dict[str, Any]:
    document = {"runs": report.runs, "kills": report.kills, "resumed": report.resumed, "seconds": report.seconds}
    return document | {"statuses": dict(report.statuses), "broken": report.broken}


def tell(screen: Screen, report: Report, counted: bool) -> None:
    rests = ", ".join(f"{count} {status}" for status, count in sorted(report.statuses.items()))
    screen.line(
        f"{report.runs} runs, {report.kills} workers killed, {report.resumed} resumed under a new epoch,"
        f" {report.seconds:.1f} s: {rests}"
    )
    for broken in report.broken:
        screen.note(broken)
    if report.broken:
        screen.note(f"{len(report.broken)} promise(s) broken")
        return
    if not report.resumed:
        screen.line("no run was hit: give it longer runs, or more of them")
    once = "no key has two effects" if counted else "effects not looked up: no --ledger"
    screen.line(f"every run rests with a reason, every chain verifies, {once}")


class Command(TerminalCommand):
    help = "Kill workers under runs and say whether every promise was kept."
    refusals = (RunsError, RecoveryError, AgentsUnusable)
    words = words
