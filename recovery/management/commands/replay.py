"""Decides journals again: `manage.py replay --all --since 7d --release refund-desk@8`."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import Any, ClassVar

import click
from django.db import transaction

from recovery.errors import RecoveryError
from recovery.management.replay_told import Tally, tell_bill, tell_lines, tell_one, tell_price
from recovery.replay_batch import (
    Spent,
    Target,
    check_model,
    decide_all,
    decide_run,
    finished_runs,
    name_of,
    spent_by,
    target_of,
    utc_now,
)
from runs.access import shell_actor
from runs.agents import Agent
from runs.audit import record
from runs.errors import StatelessRun
from runs.management.arguments import RunParam, RunsCommand, as_json
from runs.models import Run
from runs.queries import find_run
from runs.query_language import span_or_moment
from terminal.command import FAILED, HELP, exit_codes
from terminal.numbers import Whole
from terminal.screen import Screen

CODES = exit_codes(
    exit_0="everything is decided as it is recorded",
    exit_1="something is decided otherwise",
    exit_2="refused, or something could not be decided again",
)


class SinceParam(click.ParamType[datetime]):
    """How long ago (7d, 12h), or a day or time."""

    name = "since"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        try:
            match span_or_moment(str(value)):
                case timedelta() as ago:
                    return utc_now() - ago
                case datetime() as at:
                    return at.astimezone()
                case date() as day:
                    return datetime(day.year, day.month, day.day).astimezone()
        except (ValueError, OverflowError):
            pass
        self.fail(f"Write how long ago, as in 7d or 12h, or when, as in 2031-01-31T12:00Z, not {value!r}.", param, ctx)


@click.command("replay", context_settings=HELP, epilog=CODES)
@click.argument("run", type=RunParam(), required=False)
@click.option("--release", metavar="V|AGENT@V", help="Under this one; without it the one that the run is pinned to.")
@click.option("--at", type=Whole(1), metavar="SEQ", help="Look no further than this entry.")
@click.option("--all", "every", is_flag=True, help="All finished runs of the release's agent.")
@click.option("--since", type=SinceParam(), metavar="7d|TIME", help="With --all: that have ended since. [default: 7d]")
@click.option("--strict", is_flag=True, help="Other words for the same moves make exit code 1 too.")
@click.option("--ask-model", is_flag=True, help="Ask the model again, to compare. That costs what asking costs.")
@as_json
@click.pass_obj
def words(
    screen: Screen, /, run: str | None, release: str | None, at: int | None, every: bool, since: datetime | None,
    strict: bool, ask_model: bool, as_json: bool,
) -> int:  # fmt: skip
    """Decide a journal again without any effect, and tell what would be decided otherwise now, with both moves.

    The agent's code of this process decides where it has the release, else a worker that serves it. In a pipe one line
    a difference, with tabs between: run, seq, kind, sentence, recorded move, decided move. With --json one document,
    with --all one line of JSON a run.
    """
    tally = Tally(strict)
    if every:
        if run is not None or at is not None:
            raise click.UsageError("--all looks at whole journals of all runs: leave RUN and --at out.")
        ends = replay_all(screen, release, since or utc_now() - timedelta(days=7), tally, ask_model, as_json)
    else:
        if run is None or since is not None:
            raise click.UsageError("Name a run, or say --all, which --since goes with.")
        ends = replay_one(screen, find_run(run), release, at, tally, ask_model, as_json)
    if ask_model and ends:
        tell_bill(screen, tally)
    return tally.code if ends else FAILED


def replay_one(
    screen: Screen, run: Run, release: str | None, at: int | None, tally: Tally, ask_model: bool, as_json: bool
) -> bool:
    if run.input is not None:
        raise StatelessRun
    target = target_of(run.agent, release or run.release_id)
    if ask_model and not about_to_ask(screen, target, Spent(1, run.tokens, run.cost), run):
        return False
    answer = decide_run(run, target, actor=shell_actor(), at=at, asks_model=ask_model)
    tally.add(answer)
    tell_one(screen, answer, as_json)
    return True


def replay_all(
    screen: Screen, release: str | None, since: datetime, tally: Tally, ask_model: bool, as_json: bool
) -> bool:
    agent, _, version = (release or "").partition("@")
    if not version:
        raise click.UsageError("--all needs --release AGENT@VERSION: whose runs, and under what.")
    target, spent = target_of(agent, version), spent_by(agent, since)
    if ask_model and not about_to_ask(screen, target, spent):
        return False
    answers = decide_all(finished_runs(agent, since), target, actor=shell_actor(), asks_model=ask_model)
    with screen.progress(f"replay under {name_of(target)}", spent.runs) as advance:
        for answer in answers:
            tally.add(answer)
            tell_lines(screen, answer, as_json)
            advance(1)
    screen.flush()
    screen.note(f"{name_of(target)}: {tally.sentence}")
    return True


def about_to_ask(screen: Screen, target: Target, spent: Spent, run: Run | None = None) -> bool:
    """Says what it costs, and asks who can be asked. It is money, so it is in the audit list."""
    check_model(target)
    tell_price(screen, spent)
    if screen.interactive and not screen.sure("Ask the model again?"):
        return False
    if isinstance(target, Agent):  # an order to a worker is recorded with it
        with transaction.atomic():
            record(
                shell_actor(), "run.replay", run=run.id if run is not None else None, agent=target.name,
                subject=name_of(target), asks_model=True, runs=spent.runs,
            )  # fmt: skip
    return True


class Command(RunsCommand):
    help = "Decide journals again without any effect, and tell what would be decided otherwise."
    refusals: ClassVar = (*RunsCommand.refusals, RecoveryError)
    words = words
