"""Drains a scope: `manage.py drain --scope release:refund-desk@7 --timeout 300 --wait`."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from queue import Empty, SimpleQueue
from typing import ClassVar

import click
from django.db import InterfaceError, OperationalError, connection

from journal.patience import STATEMENT
from recovery.drain_api import drain_detail, preview_out
from recovery.drains import (
    DEFAULT_TIMEOUT,
    Preview,
    Progress,
    advance_drains,
    find_drain,
    join_drain,
    order_drain,
    preview,
    progress,
)
from recovery.errors import RecoveryError
from recovery.handed_over import HandedOver, handed_over
from recovery.in_flight import InFlight
from recovery.models import Drain, Phase
from runs.access import shell_actor
from runs.counts import counted
from runs.management.arguments import RunsCommand, as_json, span
from runs.short_ids import short_id
from terminal.command import DONE, FAILED, HELP, INTERRUPTED, PASSED, REFUSED, exit_codes
from terminal.numbers import Number
from terminal.screen import Cell, Column, Screen, Styled

LOOKS = 0.8  # seconds between two looks
AWAY = (OperationalError, InterfaceError)
COLUMNS = (
    Column("run", keep=True), Column("agent"), Column("doing", keep=True), Column("age", keep=True, right=True),
    Column("seq", right=True), Column("step", right=True), Column("key"), Column("worker"),
)  # fmt: skip
REPORT = (*COLUMNS, Column("by now"))
CODES = exit_codes(
    exit_1="with --wait: it was called off",
    exit_3="with --wait: the deadline passed, or its worker was lost, and what was left is handed over",
)
the_scope = click.option(
    "--scope",
    metavar="all|agent:X|release:X@V|worker:W|region:R|tool:T",
    help="Without it everything; a terminal asks.",
)
EVERYTHING = "all"


@click.command("drain", context_settings=HELP, epilog=CODES)
@the_scope
@click.option("--timeout", type=Number(), default=DEFAULT_TIMEOUT, show_default=True, metavar="S", help="Seconds.")
@click.option("--reason", default="drained at the shell", show_default=True, help="Kept with the drain and its gate.")
@click.option("--wait", is_flag=True, help="Until nothing is in flight, or the deadline; of a drain that there is too.")
@click.option("--until-gone", is_flag=True, help="Of a worker: lifted by itself once its process is gone.")
@click.option("--dry-run", is_flag=True, help="Only say what it would touch.")
@as_json
@click.pass_obj
def words(
    screen: Screen, /, scope: str | None, timeout: float, reason: str, wait: bool, until_gone: bool, dry_run: bool,
    as_json: bool,
) -> int:  # fmt: skip
    """Send nothing more in the scope, and let its runs reach a checkpoint until the deadline.

    The last line is the drain's id. Its gate stays until `undrain`. Ctrl-C while it waits leaves the drain in force.
    """
    everything, scope = scope is None, scope or EVERYTHING
    seen = preview(scope, timeout)
    for sentence in seen.warnings:
        screen.note(sentence)
    if dry_run:
        tell_preview(screen, seen, as_json)
        return DONE
    if everything and screen.terminal and sys.stdin.isatty() and not agreed(seen):
        return REFUSED
    actor = shell_actor()
    if not wait:
        drain = order_drain(scope=scope, timeout=timeout, reason=reason, actor=actor, until_gone=until_gone)
        return tell(screen, drain, as_json)
    drain, new = join_drain(scope=scope, timeout=timeout, reason=reason, actor=actor, until_gone=until_gone)
    return follow(screen, drain, timeout, as_json, joined=not new)


def follow(screen: Screen, drain: Drain, timeout: float, as_json: bool, joined: bool) -> int:
    """`joined`: somebody has drained the scope already."""
    if joined:
        screen.note(f"{drain.scope} is drained already: {drain.owner} ordered drain {drain.pk}: {drain.reason}")
    screen.note(f"drain {drain.pk}: the deadline is {drain.deadline_at:%Y-%m-%d %H:%M:%S} UTC")
    try:
        seen = wait_for(screen, drain.pk, time.monotonic() + timeout, joined)
    except KeyboardInterrupt:
        screen.note(f"\nDrain {drain.pk} stays in force. Wait for it with the same command, follow it on "
                    f"/drains/{drain.pk}, or lift it: manage.py undrain --scope {drain.pk}")  # fmt: skip
        return INTERRUPTED
    if seen is None:
        screen.note("the time is over, and the database still does not answer")
        return PASSED
    if seen.drain.ended_at is None and not as_json:
        screen.table(COLUMNS, flying_rows(screen, seen))
    code = tell(screen, seen.drain, as_json)
    if joined and code != FAILED:
        code = DONE if seen.remaining == 0 else FAILED if seen.drain.gate.lifted_at is not None else PASSED
    return code


def agreed(seen: Preview) -> bool:
    """Who names no scope may not have meant the widest one. A pipeline is not asked."""
    flying = f"{counted(len(seen.in_flight))} in flight, {counted(len(seen.workers))} workers"
    return click.confirm(f"Drain everything ({flying})?", err=True)


def wait_for(screen: Screen, drain_id: int, until: float, joined: bool) -> Progress | None:
    """Until it is over. A database that is away is waited for, but no longer than `until` (monotonic): whoever called
    this has its own patience. None: it did not answer then.
    """
    said, away = "", False
    answers: SimpleQueue[Progress | Exception] = SimpleQueue()
    while True:
        threading.Thread(target=look, args=(drain_id, answers), daemon=True).start()
        seen = answer_of(answers)
        if isinstance(seen, Progress):
            if is_over(seen, until, joined):
                return seen
            if away or state_of(seen) != said:
                said, away = state_of(seen), False
                screen.note(said)
        elif not isinstance(seen, AWAY):
            raise seen
        elif not away:
            away = True
            screen.note(f"the database does not answer, the drain stays in force: {str(seen).splitlines()[0]}")
        if away and time.monotonic() >= until:
            return None
        time.sleep(LOOKS)


def is_over(seen: Progress, until: float, joined: bool) -> bool:
    """One that somebody else ordered has another deadline: behind it calls may still return, before it the time that
    was given for this wait may be over."""
    if not joined:
        return seen.drain.ended_at is not None
    if seen.drain.ended_at is None:
        return time.monotonic() >= until
    return seen.remaining == 0 or seen.drain.gate.lifted_at is not None or time.monotonic() >= until


def look(drain_id: int, answers: SimpleQueue[Progress | Exception]) -> None:
    """In a thread of its own, with a connection of its own: a database that hangs would keep Ctrl-C waiting too."""
    try:
        advance_drains()
        answers.put(progress(find_drain(drain_id)))
    except Exception as error:
        answers.put(error)
    finally:
        connection.close()


def answer_of(answers: SimpleQueue[Progress | Exception]) -> Progress | Exception:
    try:
        return answers.get(timeout=STATEMENT)
    except Empty:
        return OperationalError("no answer in time")


def state_of(seen: Progress) -> str:
    if seen.not_yet_at:
        return f"stopping: {', '.join(seen.not_yet_at)} may not have heard of it yet"
    names = [f"{blocker.count} in {blocker.name}" for blocker in seen.blockers]
    if seen.left_behind:
        names.append(f"{counted(len(seen.left_behind))} of a lost worker")
    left = ", ".join(names)
    return f"reaching checkpoints: {counted(seen.remaining)} left ({left})" if left else "nothing is left"


def tell(screen: Screen, drain: Drain, as_json: bool) -> int:
    """The last line is its id; the exit code tells how it ended, if it was waited for."""
    if as_json:
        screen.json(drain_detail(drain).model_dump(mode="json"))
    else:
        if drain.phase == Phase.HANDED_OVER:
            screen.table(REPORT, map(report_row, handed_over(drain)))
        screen.say(drain.scope, phase_cell(drain), f"{drain.in_flight} in flight when it was ordered")
        screen.line(str(drain.pk))
    if (lost := drain.report.get("lost")) and not as_json:
        screen.note(f"{counted(lost)} runs were left by workers that were gone before: resume has them")
    return {Phase.HANDED_OVER: PASSED, Phase.LIFTED: FAILED}.get(Phase(drain.phase), DONE)


def phase_cell(drain: Drain) -> Styled:
    looks = {Phase.DONE: "green", Phase.HANDED_OVER: "yellow", Phase.LIFTED: "dim"}
    return Styled(drain.phase.replace("_", " "), looks.get(Phase(drain.phase), "magenta"))


def report_row(one: HandedOver) -> tuple[Cell, ...]:
    by_now = f"{one.outcome}, run {one.status}" if one.outcome else f"run {one.status}"
    return (
        str(one.run_id), f"{one.agent}@{one.version}", one.doing, span(one.age), one.seq, one.step, one.key,
        f"{one.worker} (lost)" if one.lost else one.worker, by_now,
    )  # fmt: skip


def tell_preview(screen: Screen, seen: Preview, as_json: bool) -> None:
    if as_json:
        screen.json(preview_out(seen).model_dump(mode="json"))
        return
    if seen.taken_by:
        screen.note(seen.taken_by)
    screen.table(COLUMNS, flying_rows(screen, seen), empty="Nothing is in flight there.")
    parked = ", ".join(f"{counted(count)} {status.replace('_', ' ')}" for status, count in sorted(seen.parked.items()))
    screen.say("workers", ", ".join(seen.workers) or "none")
    screen.say("parked, not touched", parked or "none")
    screen.say("in doubt", str(seen.in_doubt))


def flying_rows(screen: Screen, seen: Preview | Progress) -> Iterator[tuple[Cell, ...]]:
    for one in seen.in_flight:
        yield flying_row(screen, one, (seen.as_of - one.since).total_seconds())


def flying_row(screen: Screen, one: InFlight, age: float) -> tuple[Cell, ...]:
    called: tuple[Cell, ...] = (None, None, None)
    if one.call is not None:
        called = one.call.seq, one.call.step, one.call.key
    name = short_id(one.run_id) if screen.terminal else str(one.run_id)
    return name, f"{one.agent}@{one.version}", one.doing, span(age), *called, one.worker


class Command(RunsCommand):
    help = "Send nothing more in a scope, and let its runs reach a checkpoint until a deadline."
    refusals: ClassVar = (*RunsCommand.refusals, RecoveryError)
    words = words
