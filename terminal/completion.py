"""Shell completion for bash, zsh and fish: click's own, over all commands of manage.py.

The script defines a function `holdfast` that runs manage.py from anywhere, and completes it; bash and zsh also complete
`./manage.py`.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import click
from click.shell_completion import CompletionItem, ShellComplete, get_completion_class
from django.core.management import get_commands, load_command_class

from terminal.command import TerminalCommand

NAME, VARIABLE = "holdfast", "_HOLDFAST_COMPLETE"
OF_DJANGO = ("check", "dbshell", "help", "migrate", "shell", "showmigrations")  # which an operator may want
# How click's scripts ask the program; ours is asked through `manage.py completion`, by whole paths.
ASKS = {"bash": "bash_complete $1", "zsh": f"zsh_complete {NAME}", "fish": f"COMP_CWORD=(commandline -t) {NAME}"}
FUNCTION = dict.fromkeys(("bash", "zsh"), '%s() { %s "$@"; }\n') | {"fish": "function %s; %s $argv; end\n"}
ALSO = {"bash": "complete -o nosort -F {} ./manage.py manage.py\n", "zsh": "compdef {} manage.py\n", "fish": ""}
SHELLS = tuple(ASKS)
OF_EVERY_COMMAND = {
    "help", "version", "verbosity", "settings", "pythonpath", "traceback", "no_color", "force_color", "skip_checks",
}  # fmt: skip


class Commands(click.Group):
    """manage.py as one click command. A command is imported only when words behind it are completed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        own = [name for name, app in get_commands().items() if not str(app).startswith("django.")]
        return sorted({*own, *OF_DJANGO})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        app = get_commands().get(cmd_name)
        if app is None:
            return None
        command = load_command_class(app, cmd_name) if isinstance(app, str) else app
        if isinstance(command, TerminalCommand):
            return command.words
        return click.Command(cmd_name, params=list(params_of(command.create_parser("manage.py", cmd_name))))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        return [CompletionItem(name) for name in self.list_commands(ctx) if name.startswith(incomplete)]


def params_of(parser: argparse.ArgumentParser) -> Iterator[click.Parameter]:
    """The options of a command that argparse reads, as far as completion needs them."""
    for action in parser._actions:
        if not action.option_strings or action.dest in OF_EVERY_COMMAND:
            continue
        takes = None if action.nargs == 0 else click.Choice(list(map(str, action.choices))) if action.choices else str
        yield click.Option([action.dest, *action.option_strings], is_flag=takes is None, type=takes)


def script(shell: str) -> str:
    """What the shell evaluates. Names this Python and this manage.py."""
    manage = shlex.join([sys.executable, str(Path(sys.argv[0]).resolve())])
    completer = completer_of(shell)
    asks = ASKS[shell]
    source = completer.source().replace(asks, f"{asks.rpartition(' ')[0]} {manage} completion {shell} --answer")
    return FUNCTION[shell] % (NAME, manage) + source + ALSO[shell].format(completer.func_name)


def answer(shell: str) -> str:
    """What goes on from COMP_WORDS and COMP_CWORD, in the form that the script reads."""
    return completer_of(shell).complete()


def completer_of(shell: str) -> ShellComplete:
    kind = get_completion_class(shell)
    assert kind is not None
    return kind(Commands(NAME), {}, NAME, VARIABLE)
