"""Sends a signal to a run: `manage.py signal r-7K3M9Q2A paid --payload '{"cents": 900}'`."""

from __future__ import annotations

from typing import Any

import click

from runs.access import shell_actor
from runs.commands import signal_run
from runs.management.arguments import JsonParam, RunsCommand, as_json, tell_run, the_run
from runs.queries import find_run
from terminal.command import HELP, exit_codes
from terminal.screen import Screen


@click.command("signal", context_settings=HELP, epilog=exit_codes())
@the_run
@click.argument("name")
@click.option("--payload", type=JsonParam(), default="null", metavar="JSON", help="JSON, @FILE, or - for stdin.")
@click.option("--id", "signal_id", help="The same id is one signal, however often it is sent.")
@as_json
@click.pass_obj
def words(screen: Screen, /, run: str, name: str, payload: Any, signal_id: str | None, as_json: bool) -> None:
    """Send a signal to a run. It is kept in order until the run waits for this NAME."""
    changed = signal_run(run_id=find_run(run).id, name=name, payload=payload, signal_id=signal_id, actor=shell_actor())
    tell_run(screen, changed, as_json)


class Command(RunsCommand):
    help = "Send a signal to a run."
    words = words
