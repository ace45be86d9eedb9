"""The code of an agent of pydantic-ai while its slice lasts: side by side, read anew, heard, on PostgreSQL."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any
from uuid import UUID

import pytest
from pydantic_ai import Agent, TextPart
from pydantic_ai.models.function import AgentInfo, DeltaThinkingPart, FunctionModel

from journal.entries import Kind
from recovery.commands import reconcile_intent
from recovery.forking import fork_run
from runs.commands import signal_run
from runs.integrations.pydantic_ai import journaled, messages_of
from runs.models import Run
from runs.queries import entries_of
from runs.testing import REAL, Trial
from tests.integrations.desks import ACTED, ASKED, act, call, scripted
from tests.integrations.yard import GO, MADE
from tests.rig.crew import Crew, journal, start, state
from tests.rig.ledger import wait_until
from tests.rig.versions import judges_at_once


@pytest.fixture(autouse=True)
def empty() -> Iterator[None]:
    for kept in (ACTED, ASKED, MADE):
        kept.clear()
    GO.clear()
    yield
    GO.set()


def in_thread(crew: Crew, run_id: UUID) -> threading.Thread:
    worker = crew.hire()
    thread = threading.Thread(target=worker.advance, args=(run_id, Run.objects.get(id=run_id).release_id))
    thread.start()
    return thread


def test_a_slow_call_beside_one_that_is_lost_gets_its_outcome(crew: Crew) -> None:
    run_id = start("pair", "go")
    thread = in_thread(crew, run_id)
    wait_until(lambda: state(run_id).slots and state(run_id).slots[1].error, "the first call is lost")
    GO.set()
    thread.join(30)
    assert Run.objects.get(id=run_id).status == "needs_reconciliation"
    assert state(run_id).slots[2].result == "slow done"
    slot = state(run_id).slots[1]
    reconcile_intent(run_id=run_id, seq=slot.seq, verdict="happened", result="done", evidence="saw it", actor="olga")
    assert crew.drive(run_id).status == "done"
    assert [e.kind for e in entries_of(run_id)].count(Kind.TOOL_CALL) == 2
    assert [tool for _, tool, _ in ACTED] == ["slow"]


def test_what_somebody_writes_meanwhile_does_not_begin_it_anew(crew: Crew) -> None:
    run_id = start("pair", "go")
    thread = in_thread(crew, run_id)
    wait_until(lambda: len(state(run_id).slots) == 2, "both calls are sent")
    signal_run(run_id=run_id, name="hello", payload=1, actor="olga")
    GO.set()
    thread.join(30)
    assert len(MADE) == 1


def test_a_fork_goes_on_from_where_it_was_cut(crew: Crew, monkeypatch: pytest.MonkeyPatch) -> None:
    run_id = start("yard", "Refund o-1")
    assert crew.drive(run_id).status == "awaiting_approval"
    judges_at_once(crew.standing, monkeypatch)
    first = next(e.seq for e in entries_of(run_id) if e.kind == Kind.OBS and e.step == 2)
    edited = {"order": "o-1", "cents": 1}
    fork = fork_run(
        run_id=run_id, at=first, reason="another price", actor="olga", edits=[{"seq": first, "value": edited}]
    )
    crew.drive(fork.id)
    assert journal(fork.id)[:first] == journal(run_id)[:first]
    told = [part for message in ASKED[-1] for part in message.parts if getattr(part, "tool_call_id", "") == "c2"]
    assert edited in [part.content for part in told if part.part_kind == "tool-return"]


def test_the_messages_of_a_run_that_waits_come_out(crew: Crew) -> None:
    run_id = start("yard", "Refund o-1")
    crew.drive(run_id)
    assert [type(message).__name__ for message in messages_of(run_id)] == ["ModelRequest", "ModelResponse"] * 3


class Hears:
    def __init__(self) -> None:
        self.heard: list[tuple[str, str]] = []

    def hear(self, run_id: UUID, epoch: int, attempt_seq: int, text: str, thinking: str) -> None:
        self.heard.append((text, thinking))

    def over(self, run_id: UUID) -> None: ...


def test_an_answer_is_heard_while_it_arrives() -> None:
    heard = Hears()

    def seen(text: str) -> bool:
        return any(said.startswith(text) for said, _ in heard.heard)

    async def answer(messages: list[Any], info: AgentInfo) -> AsyncIterator[Any]:
        yield {0: DeltaThinkingPart(content="hm")}
        for word in ("Hello, ", "Ann."):
            yield word
            deadline = time.monotonic() + 20
            while not seen("Hello, ") and time.monotonic() < deadline:
                await asyncio.sleep(0.01)

    agent = journaled(Agent(FunctionModel(stream_function=answer)), name="talk", version="1")
    trial = Trial(agent, "hi", tools=REAL)
    trial.worker.under_way = heard  # type: ignore[assignment]
    trial.rest()
    assert trial.result == "Hello, Ann."
    assert heard.heard[0] == ("Hello, ", "hm")
    assert json.dumps(trial.journal[2].body).count("Hello, Ann.") == 1


def test_several_calls_with_one_id_are_told_apart() -> None:
    agent = Agent(scripted([call("pay", "c1", cents=1), call("pay", "c1", cents=2)], [TextPart("said")]))

    @agent.tool_plain
    def pay(cents: int) -> str:
        act("pay", cents=cents)
        return f"paid {cents}"

    ACTED.clear()
    trial = Trial(journaled(agent, name="desk", version="1"), "go", tools=REAL).rest()
    assert trial.result == "said"
    assert [args for _, _, args in ACTED] == [{"cents": 1}, {"cents": 2}]
    assert [slot.id for slot in trial.calls] == ["c1", "c1_1"]
