"""API tokens: `manage.py token create --user ada --role approver`."""

from __future__ import annotations

from datetime import datetime

import click
from django.utils import timezone

from runs.access import ROLES, make_token, revoke_token, shell_actor
from runs.management.arguments import RunsCommand, as_json, iso, when
from runs.models import Token
from terminal.command import HELP, exit_codes
from terminal.numbers import Whole
from terminal.screen import Column, Screen, Styled

LONGEST_LIFE = 3650  # days
COLUMNS = (
    Column("number", keep=True, right=True), Column("user"), Column("name"), Column("state", keep=True),
    Column("made", keep=True, right=True), Column("last used", keep=True, right=True), Column("ends", keep=True),
)  # fmt: skip


@click.group(context_settings=HELP, epilog=exit_codes())
def words() -> None:
    """API tokens. Only their SHA-256 is kept: a token cannot be shown again."""


@words.command(epilog=exit_codes())
@click.option("--user", required=True, metavar="U", help="A missing user is made, as a viewer.")
@click.option("--role", type=click.Choice(sorted(ROLES)), help="Gives the user exactly this role.")
@click.option("--days", type=Whole(1, LONGEST_LIFE), help="It ends after so many days; without it, never.")
@click.option("--name", default="", metavar="TEXT", help="What it is for, as `token list` shows it.")
@click.pass_obj
def create(screen: Screen, /, user: str, role: str | None, days: int | None, name: str) -> None:
    """Make a token. The last line printed is the token alone."""
    screen.line(make_token(user, role, days=days, name=name))


@words.command("list", epilog=exit_codes())
@click.option("--user", metavar="U", help="Those of one user.")
@as_json
@click.pass_obj
def list_tokens(screen: Screen, /, user: str | None, as_json: bool) -> None:
    """Every token, the newest first: by its number, never its text.

    In a pipe, with tabs between: number, user, name, state, made, last used, ends.
    """
    rows = Token.objects.select_related("user").order_by("-id")
    found = list(rows.filter(user__username=user) if user is not None else rows)
    if as_json:
        screen.json({"items": [told(row) for row in found], "next_cursor": None})
        return
    screen.table(
        COLUMNS,
        (
            (
                row.pk, row.user.get_username(), row.name, state_of(row), when(screen, row.created_at),
                when(screen, row.last_used_at) if row.last_used_at else "never",
                row.expires_at.date().isoformat() if row.expires_at else "never",
            )
            for row in found
        ),
        empty="There is no token.",
    )  # fmt: skip


def told(row: Token) -> dict[str, object]:
    return {
        "id": row.pk, "user": row.user.get_username(), "name": row.name, "state": state_of(row).text,
        "created_at": iso(row.created_at), "last_used_at": at(row.last_used_at), "expires_at": at(row.expires_at),
        "revoked_at": at(row.revoked_at), "revoked_by": row.revoked_by or None,
    }  # fmt: skip


def at(time: datetime | None) -> str | None:
    return None if time is None else iso(time)


def state_of(row: Token) -> Styled:
    if row.revoked_at is not None:
        return Styled("revoked", "dim")
    if row.expires_at is not None and row.expires_at <= timezone.now():
        return Styled("expired", "dim")
    return Styled("live", "green") if row.user.is_active else Styled("user is off", "dim")


@words.command(epilog=exit_codes())
@click.argument("number", type=Whole(1))
@click.pass_obj
def revoke(screen: Screen, /, number: int) -> None:
    """The token of this NUMBER opens nothing any more. Its row stays for the record."""
    row = revoke_token(number, actor=shell_actor())
    screen.line(f"Token {row.pk} of {row.user.get_username()} is revoked.")


class Command(RunsCommand):
    help = "Make, list and revoke API tokens. The last line of `create` is the token; it cannot be shown again."
    words = words
