"""Bulk acts: `manage.py bulk cancel 'agent:refund-desk age:>1d' --reason 'the shop is closed'`."""

from __future__ import annotations

import time
from collections.abc import Iterator

import click

from runs.access import shell_actor
from runs.bulk import (
    JUDGE,
    JUDGED_FIRST,
    VERBS,
    Forecast,
    Verb,
    find_bulk,
    forecast,
    items_of,
    order_bulk,
    progress_of,
    stop_bulk,
    target_named,
    verdict_word,
    verdicts_of,
)
from runs.counts import counted
from runs.management.arguments import RunsCommand, as_json, iso, reason_option, status_cell, when
from runs.models import BulkAct, BulkItem, Release
from runs.query_meaning import Reader
from runs.rest.bulk_api import BulkItemList, BulkList, bulk_out, forecast_out, item_out
from runs.short_ids import short_id
from terminal.command import FAILED, HELP, Refused, exit_codes
from terminal.numbers import Whole
from terminal.screen import Cell, Column, Screen

NEWEST = 100
LOOKS = 0.3  # seconds
DRY = (
    Column("status", keep=True),
    Column("acts on", keep=True, right=True),
    Column("skips", right=True),
    Column("because"),
)
ACTS = (
    Column("id", keep=True), Column("act", keep=True), Column("state", keep=True), Column("done", right=True),
    Column("skipped", right=True), Column("failed", right=True), Column("to do", right=True), Column("by"),
    Column("ordered", right=True), Column("query"),
)  # fmt: skip
ITEMS = (Column("run", keep=True), Column("agent"), Column("outcome", keep=True), Column("because"))
the_id = click.argument("bulk_id", metavar="ID", type=Whole(1))


@click.group(context_settings=HELP, epilog=exit_codes())
def words() -> None:
    """Do one thing to all runs that match a query. The sweeps carry it out, a run at a time."""


def verb_words(verb: Verb) -> click.Command:
    @click.command(verb.name, help=verb.writes, epilog=exit_codes(exit_1="nobody said yes, or --wait saw a failure"))
    @click.argument("query")
    @reason_option("")
    @click.option("--dry-run", is_flag=True, help="Count only: by status, what it would do and what it would skip.")
    @click.option("--yes", is_flag=True, help="Do not ask.")
    @click.option("--wait", is_flag=True, help="Until it is over, or stopped.")
    @as_json
    @click.pass_obj
    def act(screen: Screen, /, query: str, reason: str, dry_run: bool, yes: bool, wait: bool, as_json: bool,
            release: str | None = None, judged: int | None = None) -> int:  # fmt: skip
        target = target_named(release, None)
        first = find_bulk(judged, None) if judged is not None else None
        told = forecast(verb, query, Reader(), target, first)
        if dry_run and verb.targeted:
            return judge_first(screen, query, target, as_json)
        if dry_run:
            if as_json:
                screen.json(forecast_out(told).model_dump(mode="json"))
            else:
                tell_forecast(screen, told)
            return 0
        if not yes and not agreed(screen, told):
            return FAILED
        made = order_bulk(
            verb=verb.name, query=query, reason=reason, actor=shell_actor(), reader=Reader(), expected=told.acts,
            release=target, judged=first,
        )  # fmt: skip
        if wait:
            wait_for(made)
        return tell(screen, find_bulk(made.pk, None), as_json)

    return targeted(act) if verb.targeted else act


def targeted(act: click.Command) -> click.Command:
    """A move says where to, and may follow a dry run."""
    to = click.Option(["--release"], required=True, metavar="RELEASE", help="Where they go: AGENT@VERSION or a digest.")
    judged = click.Option(["--judged"], type=Whole(1), metavar="ID", help="Only what this dry run found compatible.")
    act.params += [to, judged]
    return act


def judge_first(screen: Screen, query: str, release: Release | None, as_json: bool) -> int:
    """Workers judge each; the last line is the id of the act, for --judged."""
    made = order_bulk(
        verb=JUDGE, query=query, reason=JUDGED_FIRST, actor=shell_actor(), reader=Reader(), release=release
    )
    wait_for(made)
    act = find_bulk(made.pk, None)
    if as_json:
        screen.json(bulk_out(act).model_dump(mode="json"))
        return 0
    screen.line(verdicts_told(act))
    screen.line(str(act.pk))
    return 0


def verdicts_told(act: BulkAct) -> str:
    counts = verdicts_of(act)
    return (
        f"{counts.compatible} compatible, {counts.fork_needed} need a fork, {counts.refused} refused, "
        f"{counts.unjudged} not judged, {counts.left} not reached"
    )


def agreed(screen: Screen, told: Forecast) -> bool:
    if not screen.terminal:
        raise Refused("Nothing was ordered: say --yes, or look first with --dry-run.")
    tell_forecast(screen, told)
    if told.verb.look != "danger":
        return click.confirm(f"{told.verb.button} {counted(told.acts)} runs?", err=True)
    return bool(click.prompt(f"Type {told.acts} to {told.verb.name} so many runs", err=True) == str(told.acts))


def tell_forecast(screen: Screen, told: Forecast) -> None:
    screen.table(DRY, forecast_rows(told), empty="No run matches.")


def forecast_rows(told: Forecast) -> Iterator[tuple[Cell, ...]]:
    for count in told.counts:
        why = "; ".join(f"{counted(number)} {reason}" for number, reason in count.skips)
        yield status_cell(count.status), str(count.acts), str(sum(number for number, _ in count.skips)), why


def wait_for(act: BulkAct) -> None:
    while BulkAct.objects.filter(pk=act.pk, ended_at=None).exists():
        time.sleep(LOOKS)


def tell(screen: Screen, act: BulkAct, as_json: bool) -> int:
    """The last line is its id."""
    seen = bulk_out(act)
    if as_json:
        screen.json(seen.model_dump(mode="json"))
    else:
        screen.line(f"{seen.done} done, {seen.skipped} skipped, {seen.failed} failed, {seen.left} to do")
        screen.line(str(act.pk))
    return FAILED if seen.failed else 0


for each in VERBS.values():
    if each.name != JUDGE:
        words.add_command(verb_words(each))


@words.command("list", epilog=exit_codes())
@as_json
@click.pass_obj
def list_acts(screen: Screen, /, as_json: bool) -> None:
    """Bulk acts, the newest first."""
    acts = list(BulkAct.objects.order_by("-id")[:NEWEST])
    if as_json:
        screen.json(BulkList(items=[bulk_out(act) for act in acts], next_cursor=None).model_dump(mode="json"))
        return
    screen.table(ACTS, (row_of(screen, act) for act in acts), empty="There was no bulk act yet.")


def row_of(screen: Screen, act: BulkAct) -> tuple[Cell, ...]:
    progress = progress_of(act)
    state = "stopped" if act.stopped_by else "finished" if act.ended_at else "under way"
    ordered = when(screen, act.created_at) if screen.terminal else iso(act.created_at)
    return (
        str(act.pk), act.verb, state, str(progress.done), str(progress.skipped), str(progress.failed),
        str(progress.left), act.actor, ordered, act.query,
    )  # fmt: skip


@words.command(epilog=exit_codes())
@the_id
@click.option("--outcome", type=click.Choice(["done", "skipped", "failed", "left"]), help="Only these.")
@as_json
@click.pass_obj
def show(screen: Screen, /, bulk_id: int, outcome: str | None, as_json: bool) -> None:
    """The runs of one act, with what became of each."""
    act = find_bulk(bulk_id, None)
    if as_json:
        items = [item_out(item) for item in every_item(act, outcome)]
        screen.json(BulkItemList(items=items, next_cursor=None).model_dump(mode="json"))
        return
    if screen.terminal and act.verb == JUDGE:
        screen.line(verdicts_told(act))
    screen.table(ITEMS, (item_row(screen, act, item) for item in every_item(act, outcome)), empty="No such run.")


def every_item(act: BulkAct, outcome: str | None) -> Iterator[BulkItem]:
    after = None
    while True:
        found, after = items_of(act, outcome, after, 1000)
        yield from found
        if after is None:
            return


def item_row(screen: Screen, act: BulkAct, item: BulkItem) -> tuple[Cell, ...]:
    name = short_id(item.run_id) if screen.terminal else str(item.run_id)
    return name, item.run.agent, verdict_word(item) if act.verb == JUDGE else item.outcome or "to do", item.said


@words.command(epilog=exit_codes())
@the_id
@as_json
@click.pass_obj
def stop(screen: Screen, /, bulk_id: int, as_json: bool) -> int:
    """Nothing more is done; what was done stays."""
    stop_bulk(act=find_bulk(bulk_id, None), actor=shell_actor())
    return tell(screen, find_bulk(bulk_id, None), as_json)


class Command(RunsCommand):
    help = "Do one thing to all runs that match a query."
    words = words
