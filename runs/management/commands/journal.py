"""Verifies, exports, imports and erases journals: `manage.py journal verify --all`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO
from uuid import UUID

import click

from journal.erase import erase_entries
from journal.export import export_run
from journal.importing import import_journals
from journal.verify import all_runs, verify_run
from runs.access import shell_actor
from runs.commands import given_reason
from runs.management.arguments import JournalParam, RunsCommand, reason_option
from terminal.command import FAILED, HELP, exit_codes
from terminal.numbers import Whole
from terminal.screen import Advance, Screen


@click.group(context_settings=HELP, epilog=exit_codes())
def words() -> None:
    """Verify, export, import or erase journals."""


@words.command(epilog=exit_codes(exit_1="a fault was found"))
@click.argument("run", type=JournalParam(), required=False)
@click.option("--all", "whole", is_flag=True, help="Every journal of the database.")
@click.option("--json", "as_json", is_flag=True, help='{"journals": …, "faults": [{"run_id", "seq", "what"}]}')
@click.pass_obj
def verify(screen: Screen, /, run: UUID | None, whole: bool, as_json: bool) -> int | None:
    """Show that journals are what was written: a line with run id and seq for each fault."""
    if (run is None) != whole:
        raise click.UsageError("Name a run, or --all.")
    runs = [run] if run is not None else list(all_runs())
    faults = []
    with screen.progress("journals", len(runs)) as told:
        for run_id in runs:
            for fault in verify_run(run_id):
                faults.append({"run_id": str(fault.run_id), "seq": fault.seq, "what": fault.what})
                if not as_json:
                    screen.line(str(fault))
            told(1)
    if as_json:
        screen.json({"journals": len(runs), "faults": faults})
    elif not faults:
        screen.line(f"{len(runs)} journals are what was written")
    return FAILED if faults else None


@words.command(epilog=exit_codes())
@click.argument("runs", type=JournalParam(), nargs=-1, required=True, metavar="RUN…")
@click.pass_obj
def export(screen: Screen, /, runs: tuple[UUID, ...]) -> None:
    """Write journals to standard output, a line of JSON an entry."""
    with screen.progress("journals", len(runs)) as told:
        for run_id in runs:
            for line in export_run(run_id):
                screen.line(line)
            told(1)


@words.command("import", epilog=exit_codes())
@click.argument("file", type=click.File(encoding="utf-8"))
@click.pass_obj
def take_in(screen: Screen, /, file: IO[str]) -> None:
    """Take exported journals in, all or none; refuses changed ones. FILE is - for standard input.

    They can be verified, exported and replayed in tests. They are no runs: no list or page shows them.
    """
    with screen.progress("entries") as told:
        runs = import_journals(counted(file, told))
    for run_id in runs:
        screen.line(str(run_id))


def counted(lines: IO[str], told: Advance) -> Iterator[str]:
    for line in lines:
        yield line
        told(1)


@words.command(epilog=exit_codes())
@click.argument("run", type=JournalParam())
@click.option("--seq", type=Whole(1), multiple=True, help="An entry; without it all of them.")
@click.option("--actor", help="Who orders it; without it you.")
@reason_option()
@click.pass_obj
def erase(screen: Screen, /, run: UUID, seq: tuple[int, ...], actor: str | None, reason: str) -> None:
    """Turn bodies of a finished run into tombstones; the chain still verifies."""
    erased = erase_entries(run, list(seq) or None, actor=actor or shell_actor(), reason=given_reason(reason))
    if not erased:
        screen.note("They were erased before.")
    screen.line(f"{len(erased)} entries erased")


class Command(RunsCommand):
    help = "Verify, export, import or erase journals."
    words = words
