"""Writes a remark into a run's journal: `manage.py note r-7K3M9Q2A 'the customer called'`."""

from __future__ import annotations

import click

from runs.access import shell_actor
from runs.commands import note_run
from runs.management.arguments import RunsCommand, as_json, tell_run, the_run
from runs.queries import find_run
from terminal.command import HELP, exit_codes
from terminal.screen import Screen


@click.command("note", context_settings=HELP, epilog=exit_codes())
@the_run
@click.argument("text")
@as_json
@click.pass_obj
def words(screen: Screen, /, run: str, text: str, as_json: bool) -> None:
    """Write a remark into a run's journal, beside your name. It changes nothing else."""
    tell_run(screen, note_run(run_id=find_run(run).id, text=text, actor=shell_actor()), as_json)


class Command(RunsCommand):
    help = "Write a remark into a run's journal."
    words = words
