"""Shell completion: `eval "$(./manage.py completion bash)"`."""

from __future__ import annotations

import click

from terminal.command import HELP, TerminalCommand, exit_codes
from terminal.completion import SHELLS, answer, script
from terminal.screen import Screen


@click.command("completion", context_settings=HELP, epilog=exit_codes())
@click.argument("shell", type=click.Choice(SHELLS))
@click.option("--answer", "answers", is_flag=True, hidden=True)
@click.pass_obj
def words(screen: Screen, /, shell: str, answers: bool) -> None:
    """Print what makes SHELL complete commands, options, agents, statuses and the newest runs.

    It also defines a function `holdfast` that runs manage.py from anywhere.
    """
    if not answers:
        screen.line(script(shell))
        return
    try:
        screen.line(answer(shell))
    except Exception:  # somebody pressed the Tab key: a database that is away is no reason to write over his line
        return


class Command(TerminalCommand):
    help = "Print what makes a shell complete commands, options, agents, statuses and runs."
    words = words
