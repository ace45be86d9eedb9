"""More releases of an agent, and runs that are moved to them without anybody's judgement."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from django.db import connection

from recovery import replays
from recovery.replay_work import carry_out
from runs.agents import Agent
from runs.commands import locked_run
from runs.engine.worker import Worker
from runs.models import Run
from runs.pinning import move_run
from runs.registry import agents, announce_one


def serve_also(agent: Agent) -> Agent:
    """From here on this process's workers serve it beside the others."""
    announce_one(agent, serving=False)
    agents()[agent.release_id] = agent
    return agent


def agent_of(run_id: UUID) -> Agent:
    return agents()[Run.objects.get(id=run_id).release_id]


def next_version(run_id: UUID, **changes: Any) -> Agent:
    """The run's agent in its next version, served; the same but for `changes`."""
    old = agent_of(run_id)
    return serve_also(replace(old, version=str(int(old.version) + 1), **changes))


def pin(run_id: UUID, agent: Agent, actor: str = "olga", **told: Any) -> None:
    with locked_run(run_id) as held:
        move_run(held, announce_one(agent, serving=False), {"reason": "a test"} | told, actor)


def serving(worker: Worker, *more: Agent) -> None:
    """The worker's session says that it serves these too: as if it had been started with them."""
    given = [[agent.release_id for agent in more], worker.session.id]
    with connection.cursor() as cursor:
        cursor.execute("UPDATE runs_workersession SET serves = serves || %s::varchar[] WHERE id = %s", given)


def judges_at_once(worker: Worker, patch: pytest.MonkeyPatch) -> None:
    """Whatever is to be decided again, this worker decides as it is ordered."""
    worker.session.concurrency = 40  # of which some may judge at a time
    patch.setattr(replays, "send", lambda replay_id, release_id: carry_out(worker, replay_id))
