"""Lists runs: `manage.py runs --status held --label region:eu`."""

from __future__ import annotations

from typing import Any

import click

from runs.listing import list_runs
from runs.management.arguments import (
    AgentParam,
    LabelParam,
    RunParam,
    RunsCommand,
    as_json,
    iso,
    status_cell,
    when,
)
from runs.models import Run, Status
from runs.queries import find_run
from runs.rest import answers
from runs.rest.schemas import RunList
from runs.short_ids import short_id
from terminal.command import HELP, exit_codes
from terminal.numbers import Whole
from terminal.screen import Cell, Column, Screen

COLUMNS = (
    Column("run", keep=True), Column("agent"), Column("status", keep=True), Column("since", keep=True, right=True),
    Column("why it does not move"), Column("labels"),
)  # fmt: skip


@click.command("runs", context_settings=HELP, epilog=exit_codes())
@click.option("--status", multiple=True, type=click.Choice(Status.values), help="One of these; may be repeated.")
@click.option("--agent", type=AgentParam())
@click.option("--release", metavar="AGENT@VERSION", help="Or the release's id.")
@click.option("--label", multiple=True, type=LabelParam(), metavar="KEY:VALUE", help="All must match.")
@click.option("--parent", type=RunParam(), help="Children of this run.")
@click.option("--q", "text", metavar="TEXT", help="An id, a short id, a request key, a business id, or an agent.")
@click.option("--query", metavar="QUERY", help="As in the console: 'status:held -agent:x epoch:>1'.")
@click.option("--limit", type=Whole(1, 1000), default=50, show_default=True)
@click.option("--cursor", help="The next page: as the page before gave it.")
@as_json
@click.pass_obj
def words(screen: Screen, /, as_json: bool, label: Any, parent: str | None, cursor: str | None, **filters: Any) -> None:
    """List runs, the newest first.

    In a pipe, with tabs between: id, agent@version, status, since, reason, labels.
    """
    whose = find_run(parent).id if parent is not None else None
    found, following = list_runs(**filters, labels=dict(label), parent=whose, after=cursor)
    if as_json:
        page = RunList(items=[answers.run_row(run) for run in found], next_cursor=following)
        screen.json(page.model_dump(mode="json"))
        return
    screen.table(COLUMNS, (row_of(screen, run) for run in found), empty="No such runs.")
    if following:
        screen.note(f"more: --cursor {following}")


def row_of(screen: Screen, run: Run) -> tuple[Cell, ...]:
    labels = " ".join(f"{key}:{value}" for key, value in run.labels.items())
    name = short_id(run.id) if screen.terminal else str(run.id)
    since = when(screen, run.since) if screen.terminal else iso(run.since)
    return name, str(run.release), status_cell(run.status), since, run.reason, labels


class Command(RunsCommand):
    help = "List runs, the newest first."
    words = words
