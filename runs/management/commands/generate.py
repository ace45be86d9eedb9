"""Fills a database for tests of scale: `manage.py generate --runs 100000 --entries-per-run 10`."""

from __future__ import annotations

import click

from runs.generate import generate
from runs.management.arguments import RunsCommand
from terminal.command import HELP, exit_codes
from terminal.numbers import Whole
from terminal.screen import Screen


@click.command("generate", context_settings=HELP, epilog=exit_codes())
@click.option("--runs", type=Whole(0, 10_000_000), required=True, metavar="N")
@click.option("--entries-per-run", type=Whole(2, 100_000), required=True, metavar="M")
@click.option("--seed", type=Whole(0), default=0, show_default=True, help="The same seed gives the same stories.")
@click.pass_obj
def words(screen: Screen, /, runs: int, entries_per_run: int, seed: int) -> None:
    """Fill a database for tests of scale with runs that look real, of every status, over thirty days.

    Their journals verify. No worker serves them. Not for a database that somebody works with.
    """
    with screen.progress("runs", runs) as told:
        generate(runs, entries_per_run, seed, told)
    screen.line(f"{runs} runs of {entries_per_run} entries each")


class Command(RunsCommand):
    help = "Fill a database for tests of scale with runs that look real."
    words = words
