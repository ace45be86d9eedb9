"""Shows a run: `manage.py run r-7K3M9Q2A --follow`."""

from __future__ import annotations

import json

import click

from runs.management import following
from runs.management.arguments import RunsCommand, as_json, iso, status_cell, the_run, when
from runs.models import ENDED, Run
from runs.pages.run_page import Reading
from runs.queries import entries_of, find_run
from runs.rest import answers
from runs.short_ids import short_id
from terminal.command import HELP, INTERRUPTED, exit_codes
from terminal.numbers import Whole
from terminal.screen import Screen, Styled

NEWEST = 200  # entries shown at once


@click.command("run", context_settings=HELP, epilog=exit_codes())
@the_run
@click.option("--seq", type=Whole(1), help="This entry whole.")
@click.option("--all", "whole", is_flag=True, help=f"Every entry, not the newest {NEWEST}.")
@click.option("--follow", is_flag=True, help="Go on with what is new until the run ends.")
@as_json
@click.pass_obj
def words(screen: Screen, /, run: str, seq: int | None, whole: bool, follow: bool, as_json: bool) -> int | None:
    """Show a run: why it stands where it stands, and its journal step by step.

    In a pipe one line an entry, with tabs between: seq, recorded at, step, kind, tool, effect class, key, outcome of
    the step, seconds, actor, text. With --json the run as GET /runs/ID, with --seq the entry as in its journal.
    """
    if as_json and follow:
        raise click.UsageError("--follow tells one entry after the other; --json is one document.")
    found = find_run(run)
    if seq is not None:
        tell_entry(screen, found, seq, as_json)
        return None
    if as_json:
        screen.json(answers.run_detail(found).model_dump(mode="json"))
        return None
    reading = Reading(found.id).refresh()
    tell_journal(screen, found, reading, 0 if whole else max(reading.state.seq - NEWEST, 0))
    if not follow:
        return None
    try:
        ended = following.follow(screen, found.id, lambda row: row.status in ENDED, reading)
    except KeyboardInterrupt:
        return INTERRUPTED
    if screen.terminal:
        screen.say(status_cell(ended.status), ended.reason)
    return None


def tell_entry(screen: Screen, run: Run, seq: int, as_json: bool) -> None:
    entries = entries_of(run.id, after=seq - 1, limit=1)
    if not entries or entries[0].seq != seq:
        raise click.UsageError(f"{short_id(run.id)} has no entry {seq}.")
    e = answers.entry(entries[0])
    if as_json:
        screen.json(e.model_dump(mode="json"))
        return
    for name, value in (("seq", e.seq), ("kind", e.kind), ("step", e.step), ("epoch", e.epoch), ("actor", e.actor)):
        screen.say(Styled(f"{name:<8}", "dim"), value)
    screen.say(Styled(f"{'at':<8}", "dim"), iso(e.recorded_at))
    screen.line(json.dumps(e.body, indent=2))


def tell_journal(screen: Screen, run: Run, reading: Reading, after: int) -> None:
    if not screen.terminal:
        for cells in following.script_rows(run, reading, after):
            screen.say(*cells)
        return
    name = short_id(run.id)
    worker = run.session.name if run.session and run.session.ended_at is None else None
    screen.say(Styled(name, "bold"), str(run.release), status_cell(run.status), when(screen, run.since), str(run.id))
    if worker:
        screen.say(Styled("worker", "dim"), worker, f"epoch {run.epoch}")
    if answers.is_stateless(run):
        screen.say(Styled("A stateless run keeps no journal.", "dim"))
    if after:
        screen.say(Styled(f"… {after} earlier entries: manage.py run {name} --all", "dim"))
    for cells in following.journal_lines(run, reading, after):
        screen.say(*cells, cut=True)
    for cells in following.pending_lines(run):
        screen.say(*cells)


class Command(RunsCommand):
    help = "Show a run: why it stands where it stands, and its journal step by step."
    words = words
