"""Starts a run: `manage.py start refund-desk --input '{"order_id": "o-1"}' --wait`."""

from __future__ import annotations

import json
from math import inf
from typing import Any

import click

from runs.access import shell_actor
from runs.commands import start_run
from runs.management.arguments import AgentParam, JsonParam, LabelParam, RunsCommand
from runs.management.following import follow, pending_lines
from runs.models import Run, Status
from runs.rest.answers import run_detail
from runs.rest.wait import at_rest, wait_for_rest
from runs.short_ids import short_id
from terminal.command import DONE, FAILED, HELP, INTERRUPTED, PARKED, exit_codes
from terminal.numbers import Number, Whole
from terminal.screen import Screen

CODES = exit_codes(exit_1="with --wait: failed or cancelled", exit_4="with --wait: parked")


@click.command("start", context_settings=HELP, epilog=CODES)
@click.argument("agent", type=AgentParam())
@click.option("--input", "given", type=JsonParam(), default="null", metavar="JSON", help="JSON, @FILE, or - for stdin.")
@click.option("--request-key", help="The same key with the same content gives the same run again.")
@click.option("--release", help="The release to start under; without it the newest.")
@click.option("--label", multiple=True, type=LabelParam(), metavar="KEY:VALUE")
@click.option("--deadline", type=Number(0, min_open=True), metavar="S", help="Seconds until it is cancelled.")
@click.option("--priority", type=Whole(0, 9), default=0, show_default=True, help="Higher ones are claimed sooner.")
@click.option("--wait", is_flag=True, help="Until it ends or parks. At a terminal its steps are shown as they land.")
@click.pass_obj
def words(screen: Screen, /, agent: str, given: Any, label: Any, wait: bool, **bounds: Any) -> int:
    """Start a run. The last line printed is its id, or with --wait its result as JSON.

    Ctrl-C while it waits leaves the run running.
    """
    run, _ = start_run(agent=agent, input=given, actor=shell_actor(), labels=dict(label), **bounds)
    screen.line(str(run.id))
    if not wait:
        return DONE
    screen.flush()
    try:
        rested = watch(screen, run) if screen.terminal else wait_for_rest(run.id)
    except KeyboardInterrupt:
        screen.note(f"\nThe run goes on. Look at it: manage.py run {short_id(run.id)} --follow")
        return INTERRUPTED
    return report(screen, rested)


def watch(screen: Screen, run: Run) -> Run:
    rested = follow(screen, run.id, at_rest)
    for cells in pending_lines(rested):
        screen.say(*cells)
    return rested


def report(screen: Screen, run: Run) -> int:
    """The ending as one line of JSON; the exit code tells how it ended."""
    if run.status == Status.DONE:
        screen.line(json.dumps(run_detail(run, largest=inf).result))
        return DONE
    seen = run_detail(run)
    why = {"status": str(run.status), "reason": run.reason, "error": seen.error, "cancelled": seen.cancelled}
    screen.line(json.dumps({name: value for name, value in why.items() if value}))
    return FAILED if run.status in (Status.FAILED, Status.CANCELLED) else PARKED


class Command(RunsCommand):
    help = "Start a run. The last line printed is its id, or with --wait its result as JSON."
    words = words
