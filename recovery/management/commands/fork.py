"""Restarts a run from an entry: `manage.py fork r-7K3M9Q2A --at 6 --reason 'the address was wrong'`."""

from __future__ import annotations

from typing import Any, ClassVar

import click

from recovery.errors import RecoveryError
from recovery.fork_api import told
from recovery.fork_preview import LaterEffect, Preview
from recovery.forking import fork_run, preview
from runs.access import shell_actor
from runs.management.arguments import JsonParam, RunsCommand, as_json, tell_run, the_run
from runs.queries import find_run
from runs.short_ids import short_id
from terminal.command import FAILED, HELP, exit_codes
from terminal.numbers import Whole
from terminal.screen import Cell, Column, Screen, Styled

EFFECTS = (
    Column("run", keep=True), Column("seq", keep=True, right=True), Column("what", keep=True),
    Column("class", keep=True), Column("outcome", keep=True), Column("", keep=True),
)  # fmt: skip


class EditParam(click.ParamType[dict[str, Any]]):
    """SEQ=JSON, or SEQ=@FILE."""

    name = "seq=json"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> dict[str, Any]:
        if isinstance(value, dict):
            return value
        seq, equals, text = str(value).partition("=")
        if not equals or not seq.isdecimal():
            self.fail(f"Write an edit as SEQ=JSON, not {value!r}", param, ctx)
        return {"seq": int(seq), "value": JsonParam().convert(text, param, ctx)}


@click.command("fork", context_settings=HELP, epilog=exit_codes(exit_1="with --preview: it cannot be forked there"))
@the_run
@click.option("--at", type=Whole(1), help="The last entry that is copied. Without it, --preview looks at the last one.")
@click.option("--reason", help="It is written to both journals beside your name.")
@click.option("--release", help="Go on under another release of the agent: V, agent@V or its digest.")
@click.option(
    "--edit", "edits", type=EditParam(), multiple=True, help="A value in place of a copied one (or SEQ=@FILE)."
)
@click.option("--preview", "look", is_flag=True, help="Only tell what it would copy and could repeat.")
@as_json
@click.pass_obj
def words(
    screen: Screen, /, run: str, at: int | None, reason: str | None, release: str | None,
    edits: tuple[dict[str, Any], ...], look: bool, as_json: bool,
) -> int | None:  # fmt: skip
    """Start a new run that begins with the entries 1 to AT of a run, and goes on by itself.

    A call that the run, or another fork of it, has made behind that entry waits for approval in the fork.
    """
    found = find_run(run)
    if look:
        seen = preview(found, at, release)
        tell(screen, seen, as_json)
        return None if seen.allowed else FAILED
    if at is None or reason is None:
        raise click.UsageError("Give --at and --reason; --preview tells where it can be forked.")
    made = fork_run(run_id=found.id, at=at, reason=reason, actor=shell_actor(), edits=edits, release=release)
    tell_run(screen, made, as_json)
    return None


def tell(screen: Screen, seen: Preview, as_json: bool) -> None:
    if as_json:
        screen.json(told(seen).model_dump(mode="json"))
        return
    for why in filter(None, [seen.why_not and f"Not at entry {seen.at}: {seen.why_not}.", *seen.refusals]):
        screen.line(why)
    near = ", ".join(str(seq) for seq in (seen.before, seen.after) if seq is not None)
    screen.line(f"Copied: {seen.copied} entries, {seen.steps} steps, under {seen.release}. Nearest places: {near}.")
    for lifted in seen.lifts:
        screen.line(f"Lifted: {lifted}")
    if seen.effects:
        screen.table(EFFECTS, map(row_of, seen.effects))
    for relative in seen.family:
        screen.line(f"Open: {short_id(relative.id)} {relative.status}")


def row_of(effect: LaterEffect) -> list[Cell]:
    repeats = Styled("could repeat", "yellow") if effect.could_repeat else ""
    return [short_id(effect.run), str(effect.seq), effect.tool, effect.effect, effect.outcome, repeats]


class Command(RunsCommand):
    help = "Start a run from a part of another's journal."
    refusals: ClassVar = (*RunsCommand.refusals, RecoveryError)
    words = words
