"""Lists what waits for somebody or something: `manage.py intents --state awaiting_approval`."""

from __future__ import annotations

from uuid import UUID

import click

from journal.encoding import canonical
from runs.management.arguments import RunsCommand, as_json, iso, when
from runs.management.following import OUTCOMES
from runs.queries import IntentView, list_intents
from runs.rest import answers
from runs.rest.schemas import IntentList
from runs.short_ids import short_id
from runs.values import line
from terminal.command import HELP, exit_codes
from terminal.numbers import Whole
from terminal.screen import Cell, Column, Screen, Styled

STATES = ("awaiting_approval", "in_doubt", "pending")
COLUMNS = (
    Column("run", keep=True), Column("seq", right=True), Column("tool"), Column("state", keep=True),
    Column("since", keep=True, right=True), Column("effect"), Column("arguments"),
)  # fmt: skip


@click.command("intents", context_settings=HELP, epilog=exit_codes())
@click.option("--state", type=click.Choice(STATES))
@click.option("--limit", type=Whole(1, 1000), default=100, show_default=True, help="Of runs.")
@click.option("--cursor", type=click.UUID, help="The next page: as the page before gave it.")
@as_json
@click.pass_obj
def words(screen: Screen, /, state: str | None, limit: int, cursor: UUID | None, as_json: bool) -> None:
    """List unsettled intents, the oldest first.

    In a pipe, with tabs between: run id, seq, step, tool, state, since, effect class, digest, key, arguments.
    """
    found, following = list_intents(state=state, after=cursor, limit=limit)
    if as_json:
        page = IntentList(
            items=[answers.intent(view) for view in found], next_cursor=str(following) if following else None
        )
        screen.json(page.model_dump(mode="json"))
        return
    row = person_row if screen.terminal else script_row
    screen.table(COLUMNS, (row(screen, view) for view in found), empty="Nothing waits.")
    if following:
        screen.note(f"more: --cursor {following}")


def person_row(screen: Screen, view: IntentView) -> tuple[Cell, ...]:
    state = Styled(view.state.replace("_", " "), OUTCOMES.get(view.state, ""))
    return short_id(view.run_id), view.seq, view.tool, state, when(screen, view.since), view.effect, line(view.args, 80)


def script_row(screen: Screen, view: IntentView) -> tuple[Cell, ...]:
    args = canonical(view.args).decode()
    return (
        str(view.run_id), view.seq, view.step, view.tool, view.state, iso(view.since), view.effect, view.digest,
        view.key, args,
    )  # fmt: skip


class Command(RunsCommand):
    help = "List unsettled intents: what waits for somebody or something."
    words = words
