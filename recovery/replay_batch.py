"""Journals decided again for the shell: in this process where it has the agent's code, else by a worker that serves it.

A pipeline's code need not be announced anywhere: what is not in this process is looked for among the releases.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django.db import connection

from journal.errors import JournalError
from journal.payloads import payload_store
from recovery.deciding import GivenUp, decide_within
from recovery.errors import TooManyReplays
from recovery.models import Purpose, Replay
from recovery.redecided import Result, decided_again
from recovery.replay_work import limit_of
from recovery.replays import LONGEST, WAITS, order, release_named, wait_for
from runs.agents import Agent
from runs.asked_otherwise import releases_in
from runs.engine.calls import CallPool
from runs.engine.worker import DECISION_LIMIT
from runs.errors import BadInput
from runs.models import Release, Run
from runs.outcomes import describe
from runs.queries import entries_of
from runs.registry import agents

AHEAD = 4  # orders that are out at once, so that no worker waits for the next one
BATCH = 500
LOOKS_AGAIN = 0.5  # seconds
FIRST = UUID(int=0)
# By keyset, the first that ended first: what ends meanwhile comes behind.
FINISHED = """
SELECT id, ended_at FROM runs_run
 WHERE ended_at IS NOT NULL AND agent = %(agent)s AND input IS NULL AND (ended_at, id) > (%(at)s, %(after)s)
 ORDER BY ended_at, id LIMIT %(batch)s
"""
ALL_OF_THEM = """
SELECT count(*), coalesce(sum(tokens), 0), coalesce(sum(cost), 0)::float8 FROM runs_run
 WHERE ended_at IS NOT NULL AND agent = %(agent)s AND input IS NULL AND ended_at > %(at)s
"""

type Target = Agent | Release


@dataclass(frozen=True, slots=True)
class Answer:
    """Of one run: what was found, or why nothing was."""

    run_id: UUID
    result: Result | None = None
    error: str = ""


@dataclass(frozen=True, slots=True)
class Spent:
    """Runs, and what models have cost them as it is recorded."""

    runs: int
    tokens: int
    cost: float


def target_of(agent: str, named: str | None) -> Target:
    """This process's code, else the release: by version, agent@version or digest. Raises UnknownRelease."""
    version = (named or "").removeprefix(f"{agent}@")
    for own in agents().values():
        if own.name == agent and version in (own.version, own.release_id):
            return own
    return release_named(agent, version)


def name_of(target: Target) -> str:
    return f"{target.name}@{target.version}" if isinstance(target, Agent) else str(target)


def name_of_result(result: Result) -> str:
    return f"{result['agent']}@{result['version']}"


def check_model(target: Target) -> None:
    """Raises BadInput for one that asks no model."""
    if not target.content.get("model"):
        raise BadInput(f"{name_of(target)} asks no model: there is nothing to ask again.")


def decide_run(run: Run, target: Target, *, actor: str, at: int | None = None, asks_model: bool = False) -> Answer:
    """Raises what ordering one refuses."""
    if isinstance(target, Agent):
        return decide_here(target, run.id, CallPool(), at=at, asks_model=asks_model)
    return answered(order(run, target, Purpose.REPLAY, actor=actor, at=at, asks_model=asks_model))


def decide_all(ids: Iterable[UUID], target: Target, *, actor: str, asks_model: bool = False) -> Iterator[Answer]:
    """One after the other, in order. A run that cannot be decided again is an answer too."""
    calls = CallPool()
    if isinstance(target, Agent):
        for run_id in ids:
            yield decide_here(target, run_id, calls, asks_model=asks_model)
        return
    out: deque[Replay] = deque()
    for run_id in ids:
        while (ordered := try_order(run_id, target, actor, asks_model) if len(out) < AHEAD else None) is None:
            if out:
                yield answered(out.popleft())
            else:  # replays of others are in the way
                time.sleep(LOOKS_AGAIN)
        out.append(ordered)
    while out:
        yield answered(out.popleft())


def try_order(run_id: UUID, release: Release, actor: str, asks_model: bool) -> Replay | None:
    """None: so many are out that there is no place for it now."""
    try:
        return order(Run.objects.get(id=run_id), release, Purpose.REPLAY, actor=actor, asks_model=asks_model)
    except TooManyReplays:
        return None


def decide_here(
    agent: Agent, run_id: UUID, calls: CallPool, *, at: int | None = None, asks_model: bool = False
) -> Answer:
    try:
        entries = entries_of(run_id)
        for entry in entries:
            entry.body = payload_store().resolve(entry.body)
        if not entries or (at is not None and at > len(entries)):
            return Answer(run_id, error=f"the journal has entries 1 to {len(entries)}, and no entry {at or 1}")
        releases = dict(Release.objects.filter(id__in=releases_in(entries)).values_list("id", "content"))
        result = decide_within(
            calls,
            limit_of(agent, DECISION_LIMIT, asks_model),
            lambda watch: decided_again(agent, entries, at=at, asks_model=asks_model, watch=watch, releases=releases),
        )
    except (GivenUp, JournalError) as error:
        return Answer(run_id, error=str(error))
    except Exception as error:
        return Answer(run_id, error=f"it cannot be decided again: {describe(error)}")
    return Answer(run_id, result)


def answered(replay: Replay) -> Answer:
    ended = wait_for(replay, WAITS + LONGEST)
    if ended.ended_at is None:
        return Answer(ended.run_id, error=f"no worker has decided it yet (replay {ended.pk})")
    return Answer(ended.run_id, ended.result, ended.error)


def finished_runs(agent: str, since: datetime) -> Iterator[UUID]:
    """Ids of the agent's runs with a journal that have ended since then; read in pieces."""
    given: dict[str, Any] = {"agent": agent, "at": since, "after": FIRST, "batch": BATCH}
    while True:
        with connection.cursor() as cursor:
            cursor.execute(FINISHED, given)
            rows = cursor.fetchall()
        for run_id, _ in rows:
            yield run_id
        if len(rows) < BATCH:
            return
        given |= {"after": rows[-1][0], "at": rows[-1][1]}


def spent_by(agent: str, since: datetime) -> Spent:
    with connection.cursor() as cursor:
        cursor.execute(ALL_OF_THEM, {"agent": agent, "at": since})
        return Spent(*cursor.fetchone())


def utc_now() -> datetime:
    return datetime.now(UTC)
