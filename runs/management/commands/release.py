"""Releases: `manage.py release promote refund-desk@8 --reason 'tested as a canary'`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any

import click
from click.shell_completion import CompletionItem
from django.utils import timezone

from runs.access import shell_actor
from runs.counts import counted
from runs.fleet import FleetRow, Rates, fleet, needs, rates, warnings_of
from runs.management.arguments import AgentParam, RunsCommand, as_json, reason_option, when
from runs.models import Release, Stage
from runs.releases_compared import Change, Diff, TextChange, diff
from runs.rest.releases import ReleaseList, diff_out, needs_out, rates_out, releases_out
from runs.stages import promote_release, retire_release, roll_back, set_canary
from runs.staging import find_release
from terminal.command import FAILED, HELP, exit_codes
from terminal.numbers import Number, Whole
from terminal.screen import Cell, Column, Screen, Styled

COLUMNS = (
    Column("release", keep=True), Column("new runs", keep=True), Column("workers", right=True),
    Column("open runs", right=True), Column("stranded", right=True), Column("staged", right=True), Column("by"),
    Column("notes"),
)  # fmt: skip
STYLES = {Stage.CURRENT: "green", Stage.CANARY: "yellow", Stage.RETIRING: "magenta", Stage.RETIRED: "dim"}
NEEDS = (
    Column("needed for", keep=True), Column("runs", right=True), Column("oldest", right=True), Column("for example")
)  # fmt: skip
RATES = (
    Column("release", keep=True), Column("runs", right=True), Column("finished", right=True),
    Column("failed", right=True), Column("in doubt", right=True), Column("denied", right=True),
    Column("asked a person", right=True), Column("tokens a run", right=True),
)  # fmt: skip
DIFFERENCES = (Column("what", keep=True), Column("where", keep=True), Column("before"), Column("after"))


class ReleaseParam(click.ParamType[str]):
    name = "release"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        rows = Release.objects.only("agent", "version", "stage").order_by("agent", "-created_at")
        return [CompletionItem(str(row), help=row.stage) for row in rows if str(row).startswith(incomplete)]


the_release = click.argument("release", metavar="AGENT@VERSION|ID", type=ReleaseParam())
anyway = click.option("--anyway", is_flag=True, help="Though no live worker serves it: its new runs wait for one.")


@click.group(context_settings=HELP, epilog=exit_codes())
def words() -> None:
    """Releases of agents: which takes new runs, and what still needs the others."""


@words.command("list", epilog=exit_codes())
@click.option("--agent", type=AgentParam(), help="Of this agent alone.")
@click.option("--all", "whole", is_flag=True, help="Retired ones without open runs, too.")
@as_json
@click.pass_obj
def list_releases(screen: Screen, /, agent: str | None, whole: bool, as_json: bool) -> None:
    """Releases that workers have announced, by agent: canary, current, candidates, retiring.

    In a pipe, with tabs between: agent@version, its open runs, when it was first announced, its id, stage, share, live
    workers, stranded runs.
    """
    found = fleet(None, agent=agent, retired=whole)
    if as_json:
        rows = Release.objects.in_bulk([row.release.id for row in found])
        items = releases_out([rows[row.release.id] for row in found], agent)
        screen.json(ReleaseList(items=items, next_cursor=None).model_dump(mode="json"))
        return
    row_of = person_row if screen.terminal else script_row
    screen.table(COLUMNS, (row_of(screen, row) for row in found), empty="No worker has announced a release yet.")


def person_row(screen: Screen, row: FleetRow) -> tuple[Cell, ...]:
    release = row.release
    stage = f"canary {release.share}%" if release.stage == Stage.CANARY else release.stage
    stranded = Styled(str(row.stranded), "bold red") if row.stranded else ""
    return (
        str(release), Styled(stage, STYLES.get(Stage(release.stage), "")), len(row.servers), row.open_runs, stranded,
        when(screen, release.staged_at), release.staged_by, "; ".join(warnings_of(row)),
    )  # fmt: skip


def script_row(screen: Screen, row: FleetRow) -> tuple[Cell, ...]:
    release = row.release
    return (
        str(release), f"{row.open_runs} open", f"{release.created_at:%Y-%m-%dT%H:%M:%SZ}", release.id, release.stage,
        release.share, len(row.servers), row.stranded,
    )  # fmt: skip


# -- changing ----------------------------------------------------------------------------------------------------------


@words.command(epilog=exit_codes())
@the_release
@reason_option()
@anyway
@as_json
@click.pass_obj
def promote(screen: Screen, /, release: str, reason: str, anyway: bool, as_json: bool) -> None:
    """New runs start under it from now on; the release that took them is retiring. Last line: its id."""
    tell(screen, promote_release(release_id=release, reason=reason, actor=shell_actor(), anyway=anyway), as_json)


@words.command(epilog=exit_codes())
@the_release
@click.option("--share", type=Whole(0, 100), required=True, help="Of 100 new runs; 0: a candidate again.")
@reason_option()
@anyway
@as_json
@click.pass_obj
def canary(screen: Screen, /, release: str, share: int, reason: str, anyway: bool, as_json: bool) -> None:
    """Give it a share of the new runs; the current release takes the rest. Last line: its id."""
    changed = set_canary(release_id=release, share=share, reason=reason, actor=shell_actor(), anyway=anyway)
    tell(screen, changed, as_json)


@words.command(epilog=exit_codes())
@click.argument("agent", type=AgentParam())
@reason_option()
@anyway
@as_json
@click.pass_obj
def rollback(screen: Screen, /, agent: str, reason: str, anyway: bool, as_json: bool) -> None:
    """New runs start under the release that was current before. One step; promote to go further. Last line: its id."""
    tell(screen, roll_back(agent=agent, reason=reason, actor=shell_actor(), anyway=anyway), as_json)


@words.command(epilog=exit_codes())
@the_release
@reason_option()
@as_json
@click.pass_obj
def retire(screen: Screen, /, release: str, reason: str, as_json: bool) -> None:
    """Nothing may be started under it any more. Refused with the list while something needs it. Last line: its id."""
    tell(screen, retire_release(release_id=release, reason=reason, actor=shell_actor()), as_json)


def tell(screen: Screen, changed: Release, as_json: bool) -> None:
    if as_json:
        screen.json(releases_out([changed], changed.agent)[0].model_dump(mode="json"))
        return
    share = f" {changed.share}%" if changed.stage == Stage.CANARY else ""
    screen.line(f"{changed}: {changed.stage}{share}")
    screen.line(changed.id)


# -- looking -----------------------------------------------------------------------------------------------------------


@words.command("needs", epilog=exit_codes(exit_1="something needs it"))
@the_release
@as_json
@click.pass_obj
def what_needs(screen: Screen, /, release: str, as_json: bool) -> int:
    """May it retire? Says what still needs it: new runs, open runs by status with the oldest of each.

    In a pipe, with tabs between: what, how many, since when, ids.
    """
    found = find_release(release)
    told = needs(found)
    if as_json:
        screen.json(needs_out(found, told).model_dump(mode="json"))
    else:
        rows = (
            (need.says, need.count or "", when(screen, need.since), " ".join(map(str, need.examples))) for need in told
        )
        screen.table(NEEDS, rows, empty=f"Nothing needs {found}: it may retire.")
    return FAILED if told else 0


@words.command("rates", epilog=exit_codes())
@click.argument("releases", metavar="AGENT@VERSION|ID...", type=ReleaseParam(), nargs=-1, required=True)
@click.option("--hours", type=Number(0.01, 24 * 366), default=24.0, show_default=True)
@as_json
@click.pass_obj
def how_they_fare(screen: Screen, /, releases: Sequence[str], hours: float, as_json: bool) -> None:
    """How the runs fare that were started under each since then: a canary and the current release side by side.

    In a pipe, with tabs between: agent@version, runs, finished, failed, in doubt, denied, asked, tokens a run.
    """
    since = timezone.now() - timedelta(hours=hours)
    found = [(one, rates(one, since)) for one in map(find_release, releases)]
    if as_json:
        screen.json([rates_out(one, told).model_dump(mode="json") for one, told in found])
        return
    rows = (rates_row(screen, one, told) for one, told in found)
    screen.table(RATES, rows)


def rates_row(screen: Screen, release: Release, told: Rates) -> tuple[Cell, ...]:
    shares = (of(screen, count, told.runs) for count in (told.in_doubt, told.denied, told.asked))
    tokens = "" if told.tokens is None else f"{told.tokens:.0f}"
    return str(release), told.runs, told.finished, of(screen, told.failed, told.finished), *shares, tokens


def of(screen: Screen, count: int, whole: int) -> str:
    """Beside its share for a person."""
    return f"{count} ({count / whole:.1%})" if screen.terminal and whole else str(count)


@words.command("diff", epilog=exit_codes())
@click.argument("before", metavar="AGENT@VERSION|ID", type=ReleaseParam())
@click.argument("after", metavar="AGENT@VERSION|ID", type=ReleaseParam())
@as_json
@click.pass_obj
def differences(screen: Screen, /, before: str, after: str, as_json: bool) -> None:
    """What is other in the second: field by field, prompts and other texts by line, tools by parameter.

    In a pipe, with tabs between: added, removed or changed; where; before; after. Then, of each text that changed, a
    row a line: text; where; + or - or a space; the line.
    """
    old, new = find_release(before), find_release(after)
    found = diff(old.contract, new.contract)
    if as_json:
        screen.json(diff_out(old, new, found).model_dump(mode="json", by_alias=True))
        return
    screen.table(DIFFERENCES, difference_rows(found), empty=f"{old} and {new} have the same content.")
    for place, text in texts_of(found):
        if not screen.terminal:
            for line in text.lines:
                screen.say("text", place, line.sign, line.text)
            continue
        screen.line(f"{place}, by line: {counted(text.added)} added, {counted(text.removed)} removed")
        for line in text.lines:
            screen.say(Styled(f"{line.sign} {line.text}", {"+": "green", "-": "red", "…": "dim"}.get(line.sign, "")))


def difference_rows(found: Diff) -> Iterator[tuple[Cell, ...]]:
    def row(change: Change, above: str = "") -> tuple[Cell, ...]:
        return change.kind, f"{above}{change.place}", worded(change.before), worded(change.after)

    yield from map(row, found.fields)
    yield from (row(change, "input ") for change in found.input)
    for tool in found.tools:
        if tool.kind != "changed":
            yield tool.kind, f"tool {tool.tool}", "", ""
        for change in tool.settings:
            yield row(change, f"tool {tool.tool}: ")
        for change in tool.parameters:
            yield row(change, f"tool {tool.tool}: parameter ")
        for change in tool.returns:
            yield row(change, f"tool {tool.tool}: result ")


def texts_of(found: Diff) -> Iterator[tuple[str, TextChange]]:
    yield from ((text.place, text) for text in found.texts)
    for tool in found.tools:
        yield from ((f"tool {tool.tool}: {text.place}", text) for text in tool.texts)


def worded(value: Any) -> str:
    return "" if value is None else value if isinstance(value, str) else str(value)


class Command(RunsCommand):
    help = "Say which release takes new runs, and what still needs the others."
    words = words
