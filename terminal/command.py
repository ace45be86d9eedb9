"""The adapter: a Django management command whose words click reads.

`manage.py X`, `call_command("X", …)` and the shells' completion all see the same click command.
"""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Sequence
from typing import Any, ClassVar

import click
from django.core.management import ManagementUtility
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import ProgrammingError

from terminal.screen import Screen

DONE, FAILED, REFUSED, PASSED, PARKED, INTERRUPTED = 0, 1, 2, 3, 4, 130
UNREAD = 128 + 13  # as if SIGPIPE had ended it: nobody reads what it writes
HELP = {"help_option_names": ["-h", "--help"]}
MEANINGS = {
    DONE: "done",
    FAILED: "failed",
    REFUSED: "refused: wrong words, or what was asked cannot be done",
    PASSED: "the deadline passed",
    PARKED: "parked",
    INTERRUPTED: "interrupted",
}


def exit_codes(**special: str) -> str:
    """The last paragraph of a help text; `special` is e.g. exit_1="the run failed"."""
    said = {DONE: MEANINGS[DONE], REFUSED: MEANINGS[REFUSED], INTERRUPTED: MEANINGS[INTERRUPTED]}
    said |= {int(name.removeprefix("exit_")): meaning for name, meaning in special.items()}
    return "Exit codes: " + "; ".join(f"{code} {meaning}" for code, meaning in sorted(said.items())) + "."


class Utility(ManagementUtility):
    """Django's command line, except that a command which does not exist is refused like other wrong words."""

    def fetch_command(self, subcommand: str) -> BaseCommand:
        try:
            return super().fetch_command(subcommand)
        except SystemExit:
            raise SystemExit(REFUSED) from None


class Refused(CommandError):
    """Said in one sentence on stderr; exit 2."""

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence, returncode=REFUSED)


class TerminalCommand(BaseCommand):
    """`words` is the click command; `refusals` are the domain's errors, whose text is a sentence for the user.

    The click function gets a `Screen` by `click.pass_obj`. What it returns is the exit code, None for 0.
    """

    requires_system_checks = []  # they import every address, and would double the time
    words: ClassVar[click.Command]
    refusals: ClassVar[tuple[type[Exception], ...]] = ()

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        """Takes out Django's own options wherever they stand; all else is left to click."""
        parser = super().create_parser(prog_name, subcommand, add_help=False, allow_abbrev=False, **kwargs)

        def parse_args(args: Sequence[str] | None = None, namespace: Any = None) -> Namespace:
            known = Namespace()
            _, words = parser.parse_known_args(args, known)
            known.words, known.called = words, subcommand
            return known

        parser.parse_args = parse_args  # type: ignore[method-assign, assignment]
        return parser

    def print_help(self, prog_name: str, subcommand: str) -> None:
        """`manage.py help X`."""
        with self.words.make_context(f"manage.py {subcommand}", [], resilient_parsing=True) as ctx:
            self.stdout.write(self.words.get_help(ctx))

    def handle(self, *args: Any, words: Sequence[str], called: str, **options: Any) -> None:
        screen = Screen(self.stdout, self.stderr, colour=not options["no_color"])
        try:
            code = self._obey(screen, f"manage.py {called}", words)
            screen.flush()
        except click.exceptions.NoArgsIsHelpError as error:
            raise Refused(f"Name one of its verbs.\n{error.format_message()}") from error
        except click.ClickException as error:
            raise Refused(f"{error.format_message()} (manage.py {called} --help)") from error
        except self.refusals as error:
            raise Refused(str(error)) from error
        except ProgrammingError as error:
            missing = type(error.__cause__).__name__ in ("UndefinedTable", "UndefinedColumn", "UndefinedFunction")
            if not missing:
                raise
            raise Refused("The database does not have this version's tables: run manage.py prepare.") from error
        except KeyboardInterrupt:
            screen.note("")
            sys.exit(INTERRUPTED)
        except (click.Abort, EOFError) as error:
            screen.note("" if isinstance(error.__context__, KeyboardInterrupt) else "Nobody answered.")
            sys.exit(INTERRUPTED)
        except BrokenPipeError:  # `manage.py runs | head`: who reads has enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(UNREAD)
        if code:
            sys.exit(code)

    def _obey(self, screen: Screen, name: str, words: Sequence[str]) -> int | None:
        """The exit code. As click's own `main`, which would call a reader that has enough a failure."""
        if not all(map(_is_text, words)):
            raise click.UsageError("Its words are no UTF-8 text.")
        try:
            with self.words.make_context(name, list(words), obj=screen) as ctx:
                code: int | None = self.words.invoke(ctx)
                return code
        except click.exceptions.Exit as left:
            return left.exit_code


def _is_text(word: str) -> bool:
    """Bytes that are no UTF-8 come as lone surrogates."""
    try:
        word.encode()
    except UnicodeEncodeError:
        return False
    return True
