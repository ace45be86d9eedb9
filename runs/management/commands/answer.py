"""Answers what a run asks: `manage.py answer r-7K3M9Q2A 9 '"the blue one"'`."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import click

from runs.access import shell_actor
from runs.commands import answer_ask
from runs.management.arguments import RunsCommand, as_json, strict_value, tell_run, the_run, the_seq
from runs.queries import find_run
from terminal.command import HELP, exit_codes
from terminal.screen import Screen


@click.command("answer", context_settings=HELP, epilog=exit_codes())
@the_run
@the_seq
@click.argument("value")
@click.option("--text", is_flag=True, help="VALUE is text, though it looks like JSON.")
@as_json
@click.pass_obj
def words(screen: Screen, /, run: str, seq: int, value: str, text: bool, as_json: bool) -> None:
    """Answer the question SEQ of a run. VALUE is JSON; what is none is taken as text."""
    answer: Any = value
    if not text:
        with suppress(ValueError, RecursionError):
            answer = strict_value(value)
    tell_run(screen, answer_ask(run_id=find_run(run).id, seq=seq, value=answer, actor=shell_actor()), as_json)


class Command(RunsCommand):
    help = "Answer what a run asks."
    words = words
