"""Mistakes of agents and tools: each ends in a sentence in the journal, never in a worker that goes in circles."""

import asyncio
import sys
from collections.abc import Callable, Generator
from typing import Any

import pytest

from runs.models import Run
from runs.queries import entries_of
from runs.registry import agents
from runs.sdk import Call, Fail, RunView, Sleep, ToolContext, TransientError, tool
from tests.rig.crew import Crew, journal, start, state
from tests.rig.ledger import Ledger


class Odd(BaseException):
    pass


class Unwritable(Exception):
    def __str__(self) -> str:
        raise ValueError("no words")


RAISES: dict[str, Callable[[], BaseException]] = {
    "cancelled": asyncio.CancelledError,
    "generator exit": GeneratorExit,
    "group": lambda: BaseExceptionGroup("many", [KeyboardInterrupt()]),
    "own": lambda: Odd("mine"),
    "exit": lambda: SystemExit(3),
    "unwritable": Unwritable,
}


@tool(effect="unkeyed")
def raises(ctx: ToolContext, name: str) -> None:
    raise RAISES[name]()


@tool(effect="unkeyed")
def answers(ctx: ToolContext) -> str:
    return "known"


@tool(effect="keyed")
def waits_oddly(ctx: ToolContext, seconds: str) -> None:
    raise TransientError("busy", retry_after=float(seconds) if seconds != "soon" else "soon")  # type: ignore[arg-type]


def predicate_raises(args: dict[str, Any]) -> bool:
    return bool(args["missing"])


def predicate_changes(args: dict[str, Any]) -> bool:
    args["items"].append(99)
    return False


@tool(effect="read", approval=predicate_raises)
def unclear(ctx: ToolContext) -> None: ...


@tool(effect="read", approval=predicate_changes)
def counts(ctx: ToolContext, items: list[int]) -> int:
    return len(items)


TOOLS = {t.name: t for t in (raises, answers, waits_oddly, unclear, counts)}


def drive(crew: Crew, monkeypatch: pytest.MonkeyPatch, flow: Callable[[RunView], Any], **given: Any) -> Run:
    """A run of this flow, as if it stood where the flow `read` stands."""
    run_id = start("read", given)
    agent = agents()[Run.objects.get(id=run_id).release_id]
    monkeypatch.setattr(agent, "flow", flow)
    monkeypatch.setattr(agent, "toolbox", TOOLS)
    return crew.drive(run_id)


def calls(name: str) -> Callable[[RunView], Generator[Any, Any, Any]]:
    def flow(run: RunView) -> Generator[Any, Any, Any]:
        return (yield Call(name, **run.input))

    return flow


@pytest.mark.parametrize("name", RAISES)
def test_whatever_a_tool_raises_its_outcome_is_unknown_and_asked_for_once(
    crew: Crew, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    run = drive(crew, monkeypatch, calls("raises"), name=name)
    assert (run.status, run.epoch) == ("needs_reconciliation", 1), run.reason
    assert journal(run.id) == ["START", "PLAN", "TOOL_CALL:1", "OBS:1"]


@pytest.mark.parametrize("name", RAISES)
def test_whatever_an_agent_raises_its_run_fails_and_what_is_known_is_kept(
    crew: Crew, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    def flow(run: RunView) -> Generator[Any, Any, Any]:
        yield Call("answers")
        raise RAISES[name]()

    run = drive(crew, monkeypatch, flow)
    assert (run.status, run.epoch) == ("failed", 1), run.reason
    assert run.reason.startswith("the agent's code raised")
    assert state(run.id).slots[1].result == "known"


@pytest.mark.parametrize(
    "move",
    [
        lambda: Sleep(float("nan")),
        lambda: Sleep(float("inf")),
        lambda: Sleep(1e15),
        lambda: Sleep(-1),
        lambda: Fail({"a": 1}),  # type: ignore[arg-type]
        lambda: sys.exit("bug"),
    ],
)
def test_a_move_that_cannot_be_made_fails_the_run_and_says_why(
    crew: Crew, monkeypatch: pytest.MonkeyPatch, move: Callable[[], Any]
) -> None:
    def flow(run: RunView) -> Generator[Any, Any, Any]:
        yield move()

    run = drive(crew, monkeypatch, flow)
    assert run.status == "failed" and run.reason.startswith("the agent's code raised"), run.reason


@pytest.mark.parametrize("seconds", ["inf", "1e18", "nan", "-5", "soon"])
def test_an_odd_retry_after_is_no_reason_to_stop(crew: Crew, monkeypatch: pytest.MonkeyPatch, seconds: str) -> None:
    run_id = start("read", {"seconds": seconds})
    agent = agents()[Run.objects.get(id=run_id).release_id]
    monkeypatch.setattr(agent, "flow", calls("waits_oddly"))
    monkeypatch.setattr(agent, "toolbox", TOOLS)
    park = crew.hire().advance(run_id, agent.release_id)
    assert park is not None and park.status == "waiting" and journal(run_id)[-1] == "ERROR:1"


def test_a_predicate_that_raises_fails_its_call_and_nothing_is_sent(
    crew: Crew, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = drive(crew, monkeypatch, calls("unclear"))
    assert run.status == "failed" and "its predicate raised KeyError: 'missing'" in run.reason


def test_a_predicate_changes_nothing_of_what_is_journaled(crew: Crew, monkeypatch: pytest.MonkeyPatch) -> None:
    run = drive(crew, monkeypatch, calls("counts"), items=[1, 2])
    assert entries_of(run.id)[-1].body == {"result": 2}


def test_a_models_answer_is_kept_whatever_it_says_of_its_usage(
    crew: Crew, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = Run.objects.get(id=start("model", {"effect": "keyed"})).release_id
    ask = agents()[release].decide.ask  # type: ignore[union-attr]
    odd = {"tokens": 10, "cost": float("nan"), "words": "many", 3: 1}
    slot = type(agents()[release].decide)(lambda view: (ask(view)[0], odd))  # type: ignore[call-arg,arg-type]
    monkeypatch.setattr(agents()[release], "decide", slot)
    run = crew.drive(start("model", {"effect": "keyed"}))
    assert run.status == "done", run.reason
    assert state(run.id).usage == {"tokens": 30, "3": 3}
