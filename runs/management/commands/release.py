"""Releases that workers have announced: `manage.py release list`."""

from __future__ import annotations

import click
from django.db.models import Count, Q

from runs.management.arguments import RunsCommand, as_json
from runs.models import ENDED, Release
from runs.rest.answers import release
from runs.rest.schemas import ReleaseList
from terminal.command import HELP, exit_codes
from terminal.screen import Column, Screen

COLUMNS = (Column("release", keep=True), Column("runs"), Column("announced", keep=True), Column("id"))


@click.group(context_settings=HELP, epilog=exit_codes())
def words() -> None:
    """Releases of agents."""


@words.command("list", epilog=exit_codes())
@as_json
@click.pass_obj
def list_releases(screen: Screen, /, as_json: bool) -> None:
    """agent@version, its runs that have not ended, when it was first announced, its id."""
    rows = Release.objects.order_by("agent", "-created_at", "id")
    if as_json:
        items = [release(row) for row in rows]
        screen.json(ReleaseList(items=items, next_cursor=None).model_dump(mode="json"))
        return
    counted = rows.annotate(open_runs=Count("run", filter=~Q(run__status__in=ENDED))).defer("content", "declared")
    screen.table(
        COLUMNS,
        ((str(row), f"{row.open_runs} open", f"{row.created_at:%Y-%m-%dT%H:%M:%SZ}", row.id) for row in counted),
        empty="No worker has announced a release yet.",
    )


class Command(RunsCommand):
    help = "Show the releases that workers have announced."
    words = words
