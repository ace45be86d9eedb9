"""Lists worker sessions: `manage.py workers`."""

from __future__ import annotations

import click
from django.db.models import Count, Q
from django.utils import timezone

from runs.management.arguments import RunsCommand, as_json, when
from runs.models import WorkerSession
from runs.rest import answers
from runs.rest.fleet import WorkerList
from terminal.command import HELP, exit_codes
from terminal.screen import Column, Screen, Styled

COLUMNS = (
    Column("worker"), Column("state", keep=True), Column("runs", right=True), Column("at once", right=True),
    Column("pool"), Column("host"), Column("pid", right=True), Column("heartbeat", keep=True, right=True),
    Column("started", keep=True, right=True), Column("why it ended"),
)  # fmt: skip


@click.command("workers", context_settings=HELP, epilog=exit_codes())
@as_json
@click.pass_obj
def words(screen: Screen, /, as_json: bool) -> None:
    """List worker sessions: those that live, and those that ended within the last hour.

    In a pipe, with tabs between: name, state, runs, concurrency, pool, host, pid, heartbeat, started, why it ended.
    """
    recent = Q(ended_at__isnull=True) | Q(ended_at__gt=timezone.now() - answers.RECENTLY)
    rows = WorkerSession.objects.filter(recent).annotate(runs=Count("run")).order_by("-started_at")
    if as_json:
        screen.json(WorkerList(items=[answers.worker(row) for row in rows], next_cursor=None).model_dump(mode="json"))
        return
    screen.table(
        COLUMNS,
        (
            (
                row.name, state_of(row), row.runs, row.concurrency, row.pool, row.host, row.pid,
                when(screen, row.heartbeat_at), when(screen, row.started_at), row.end_reason,
            )
            for row in rows
        ),
        empty="No worker lives, and none ended within the last hour.",
    )  # fmt: skip


def state_of(row: WorkerSession) -> Styled:
    if row.ended_at is not None:
        return Styled("ended", "dim")
    if row.expires_at < timezone.now():
        return Styled("silent", "bold red")
    return Styled("draining", "yellow") if row.draining_at else Styled("live", "green")


class Command(RunsCommand):
    help = "List worker sessions: those that live, and those that ended within the last hour."
    words = words
