"""Whose runs somebody sees: `manage.py scope ada --agent refund-desk`."""

from __future__ import annotations

import click
from django.contrib.auth.models import User

from runs.access import UserNotFound, agents_of, set_scope, shell_actor
from runs.management.arguments import RunsCommand
from runs.models import Release
from terminal.command import HELP, Refused, exit_codes
from terminal.screen import Screen


@click.command("scope", context_settings=HELP, epilog=exit_codes())
@click.argument("user")
@click.option("--agent", "agents", multiple=True, metavar="X", help="Runs of this agent. May be given again.")
@click.option("--all", "whole", is_flag=True, help="Runs of every agent.")
@click.pass_obj
def words(screen: Screen, /, user: str, agents: tuple[str, ...], whole: bool) -> None:
    """Show which agents' runs USER sees and acts on, or say it anew. A scope does not change what a role allows."""
    if agents and whole:
        raise Refused("Name agents or --all, not both.")
    if agents or whole:
        known = set(Release.objects.filter(agent__in=agents).values_list("agent", flat=True))
        for name in sorted(set(agents) - known):
            screen.note(f"No worker has announced an agent {name!r} yet.")
        set_scope(user, agents, actor=shell_actor())
    found = User.objects.filter(username=user).first()
    if found is None:
        raise UserNotFound(f"({user[:60]})")
    for name in sorted(agents_of(found) or ["every agent"]):
        screen.line(name)


class Command(RunsCommand):
    help = "Show or set the agents whose runs a user sees and acts on."
    words = words
