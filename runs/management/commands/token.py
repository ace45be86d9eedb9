"""API tokens: `manage.py token create --user ada --role approver`."""

from __future__ import annotations

import click

from runs.access import ROLES, make_token
from runs.management.arguments import RunsCommand
from terminal.command import HELP, exit_codes
from terminal.screen import Screen


@click.group(context_settings=HELP, epilog=exit_codes())
def words() -> None:
    """API tokens. Only their SHA-256 is kept: a token cannot be shown again."""


@words.command(epilog=exit_codes())
@click.option("--user", required=True, metavar="U", help="A missing user is made, as a viewer.")
@click.option("--role", type=click.Choice(sorted(ROLES)), help="Gives the user exactly this role.")
@click.pass_obj
def create(screen: Screen, /, user: str, role: str | None) -> None:
    """Make a token. The last line printed is the token alone."""
    screen.line(make_token(user, role))


class Command(RunsCommand):
    help = "Make API tokens. The last line printed is the token; it cannot be shown again."
    words = words
