"""The memory answers as PostgreSQL does: the same agents write the same journals on both."""

import ast
import time
from pathlib import Path
from typing import Any

import pytest

from journal.entries import Entry
from journal.payloads import payload_store
from runs import testing
from runs.agents import Agent
from runs.engine.sessions import Session
from runs.engine.worker import Worker
from runs.memory.store import Memory
from runs.memory.worker import MemoryWorker
from runs.models import ENDED, Release, Run
from runs.queries import entries_of
from runs.registry import agents
from runs.sdk import start
from runs.testing.fakes import World, faked
from tests.rig.ledger import ROOT
from tests.testing.agents import EVERY, FAKES, desk, modelled, scripted
from tests.testing.test_tree import CHARGE, leaf, tree

VARYING = {"code", "digest", "due", "key", "child", "parent", "release", "deadline"}


def told(entries: list[Entry]) -> list[Any]:
    return [
        (e.kind, e.step, e.settles, e.epoch, {k: v for k, v in e.body.items() if k not in VARYING}) for e in entries
    ]


def on_postgres(dsn: str, given: list[Agent], input: Any) -> list[Entry]:
    """The first agent's run, driven by a real worker."""
    for agent in given:
        Release.objects.create(
            id=agent.release_id, agent=agent.name, version=agent.version, content=agent.content, stage="current"
        )
    serves = {agent.release_id: agent for agent in given}
    session = Session("w1", "threads", 4, "local", 30.0, list(serves), {})
    worker = Worker(dsn, session, serves, payload_store(), lambda *message: None)
    run_id = start(given[0].name, input)
    deadline = time.monotonic() + 60
    try:
        while Run.objects.get(id=run_id).status not in ENDED:
            assert time.monotonic() < deadline, list(Run.objects.values_list("status", "reason"))
            for run in Run.objects.exclude(status__in=ENDED).order_by("id"):
                worker.advance(run.id, run.release_id)
        return entries_of(run_id)
    finally:
        worker.close()


@pytest.mark.parametrize(
    ("given", "input", "tools"),
    [([desk], "o-1", FAKES), ([scripted], "o-1", {"look_up": EVERY["look_up"]}), ([modelled], None, {"charge": "c"}),
     ([tree, leaf], None, CHARGE)],
    ids=["flow", "decide", "model", "tree"],
)  # fmt: skip
def test_a_run_writes_the_same_journal_in_memory_and_on_postgresql(
    dsn: str, settings: Any, given: list[Agent], input: Any, tools: dict[str, Any]
) -> None:
    settings.HOLDFAST_AGENTS = ()
    agents.cache_clear()
    expected = on_postgres(dsn, faked(given, tools, World()), input)
    if (
        given[0] is tree
    ):  # a child may end while its parent looks, or after: only the entries are the same, not the epochs
        expected = [entry for entry in expected if entry.kind != "NOTE"]
    run = testing.start(given[0], input, agents=given[1:], tools=tools).finish()
    assert [each[:3] + each[4:] for each in told(run.journal)] == [each[:3] + each[4:] for each in told(expected)]


def test_the_memory_has_all_that_the_engine_asks_of_a_worker() -> None:
    asked = set()
    for path in ("slice", "recorder", "performing", "baton"):
        for node in ast.walk(ast.parse(Path(ROOT / f"runs/engine/{path}.py").read_text())):
            if (
                isinstance(node, ast.Attribute)
                and getattr(node.value, "attr", getattr(node.value, "id", "")) == "worker"
            ):
                asked.add(node.attr)
    assert len(asked) > 15
    worker = MemoryWorker(Memory([desk]))
    assert [name for name in sorted(asked) if not hasattr(worker, name)] == []
