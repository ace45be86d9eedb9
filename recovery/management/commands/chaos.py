"""Kills workers under runs and says whether every promise was kept: `manage.py chaos --seconds 60`."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import asdict
from typing import Any

import click

from recovery.chaos import Brief, Report, rehearse
from recovery.errors import RecoveryError
from runs.errors import RunsError
from runs.management.arguments import AgentParam, strict_value
from runs.registry import AgentsUnusable
from terminal.command import FAILED, HELP, TerminalCommand, exit_codes
from terminal.numbers import Number, Whole
from terminal.screen import Column, Screen

# Run without --agent, in turn: some refunds need an approval, travellers answer, books do not add up.
MIXED = (
    ("refund-desk", '{"order_id": "o-{n}"}'),
    ("travel-booking", '{"traveller": "t{n}@example.com", "to": "lisbon", "day": "2027-05-01", "decide_within": 600}'),
    ("refund-desk", '{"order_id": "o-{n}", "amount_cents": 100}'),
    ("refund-desk", '{"order_id": "o-{n}"}'),
)
MIGRATION = ("ledger-migration", '{"ledger": "2019-q3", "pause": 0.2}')
RUNS_A_MIGRATION = 50


@click.command("chaos", context_settings=HELP, epilog=exit_codes(exit_1="a promise was broken"))
@click.option("--seconds", type=Number(0, min_open=True), default=60.0, show_default=True,
              help="How long workers are killed.")  # fmt: skip
@click.option("--runs", type=Whole(1, 10_000), default=200, show_default=True)
@click.option("--every", type=Number(0, min_open=True), default=1.0, show_default=True,
              help="Seconds between two kills.")  # fmt: skip
@click.option("--patience", type=Number(0), default=300.0, show_default=True,
              help="Seconds until all runs must rest.")  # fmt: skip
@click.option("--agent", type=AgentParam(), help="Only runs of this agent. Default: a mix of the demo's.")
@click.option("--input", "template", default="null", metavar="JSON", help="Of --agent; {n} becomes the run's number.")
@click.option("--ledger", default=lambda: os.environ.get("HOLDFAST_PAYMENTS_URL"), metavar="URL",
              help="Where its effects can be counted by key (HOLDFAST_PAYMENTS_URL).")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="The report as strict JSON.")
@click.pass_obj
def words(
    screen: Screen, /, template: str, runs: int, agent: str | None, as_json: bool, **how: Any
) -> int | None:  # fmt: skip
    """Start runs, kill a worker of this machine again and again, serve who waits for a person, and check: all rest with
    a reason, nothing was done twice, every chain verifies."""
    chosen = [(agent, template)] * runs if agent else [mixed(n) for n in range(runs)]
    try:
        briefs = [Brief(name, strict_value(text.replace("{n}", str(n)))) for n, (name, text) in enumerate(chosen, 1)]
    except (ValueError, RecursionError) as error:
        raise click.BadParameter(f"this is not JSON: {error}", param_hint="'--input'") from error
    report = rehearse(briefs=briefs, say=screen.note if as_json else screen.line, **how)
    if as_json:
        screen.json(as_document(report))
    else:
        tell(screen, report, counted=bool(how["ledger"]))
    return FAILED if report.broken else None


def mixed(number: int) -> tuple[str, str]:
    return MIGRATION if number % RUNS_A_MIGRATION == RUNS_A_MIGRATION - 1 else MIXED[number % len(MIXED)]


def as_document(report: Report) -> dict[str, Any]:
    return asdict(report)


def tell(screen: Screen, report: Report, counted: bool) -> None:
    columns = [Column("agent", keep=True), Column("runs", right=True), Column("how they rest")]
    rows = [(agent, rests.total(), counts(rests)) for agent, rests in sorted(report.agents.items())]
    screen.table(columns, [*rows, ("all", report.statuses.total(), counts(report.statuses))])
    served = f"; the stand-in: {counts(report.served)}" if report.served else ""
    screen.line(
        f"{report.runs} runs, {report.kills} workers killed, {report.resumed} resumed under a new epoch,"
        f" {report.seconds:.1f} s{served}"
    )
    for broken in report.broken:
        screen.note(broken)
    if report.broken:
        screen.note(f"{len(report.broken)} promise(s) broken")
        return
    if not report.resumed:
        screen.line("no run was hit: give it longer runs, or more of them")
    once = f"no key has two effects ({report.effects} in all)" if counted else "effects not looked up: no --ledger"
    screen.line(f"every run rests with a reason, every chain verifies, {once}")


def counts(of: Counter[str]) -> str:
    return ", ".join(f"{count} {what}" for what, count in sorted(of.items()))


class Command(TerminalCommand):
    help = "Kill workers under runs and say whether every promise was kept."
    refusals = (RunsError, RecoveryError, AgentsUnusable)
    words = words
