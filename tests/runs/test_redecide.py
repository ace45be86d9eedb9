"""A journal is decided again without any effect, and everything that would be otherwise is told."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from typing import Any

import pytest

from journal.entries import Entry, Kind
from runs import testing
from runs.edits import edited
from runs.redeciding import Redecided, redecide
from runs.sdk import (
    Agent,
    Ask,
    Call,
    CallFailed,
    Fail,
    Finish,
    First,
    Policy,
    RunView,
    Sleep,
    Spawn,
    ToolContext,
    WaitFor,
    flow,
    tool,
)
from runs.sdk.models import FunctionModel

Moves = Generator[Any, Any, Any]


@tool(effect="read")
def look(ctx: ToolContext, order_id: str) -> dict[str, Any]:
    raise AssertionError("a replay called a tool")


@tool(effect="keyed", approval=lambda args: args["cents"] > 5_000)
def refund(ctx: ToolContext, order_id: str, cents: int) -> dict[str, Any]:
    raise AssertionError("a replay called a tool")


@tool(effect="unkeyed")
def mail(ctx: ToolContext, to: str) -> str:
    raise AssertionError("a replay called a tool")


FAKES: dict[str, Any] = {"look": {"id": "o-1", "cents": 700}, "refund": {"id": "r-1"}, "mail": "sent"}


def desk_of(version: str, code: Any, tools: Any = (look, refund, mail)) -> Agent:
    return flow(name="desk", version=version, tools=tools)(code)


def whole_desk(run: RunView) -> Moves:
    order = yield Call(look, order_id=run.input)
    try:
        done = yield Call(refund, order_id=order["id"], cents=order["cents"])
    except CallFailed as refused:
        return {"refunded": False, "why": refused.reason}
    yield Call(mail, to="a@b.example")
    return {"refunded": True, "refund": done["id"]}


def told(found: Redecided) -> list[tuple[int, str]]:
    return [(each.seq, each.kind) for each in found.divergences]


@pytest.fixture(scope="module")
def recorded() -> list[Entry]:
    return testing.run(desk_of("1", whole_desk), "o-1", tools=FAKES).journal


def test_the_same_code_decides_the_same(recorded: list[Entry]) -> None:
    found = redecide(desk_of("1", whole_desk), recorded)
    assert (told(found), found.compared, found.of, found.stopped_at) == ([], 4, 4, None)


def test_a_flow_goes_on_behind_other_arguments_and_tells_of_each(recorded: list[Entry]) -> None:
    def changed(run: RunView) -> Moves:
        order = yield Call(look, order_id=run.input)
        done = yield Call(refund, order_id=order["id"], cents=order["cents"] - 100)
        yield Call(mail, to="c@d.example")
        return {"refunded": True, "refund": done["id"], "less": 100}

    found = redecide(desk_of("2", changed), recorded)
    assert told(found) == [(6, "arguments"), (9, "arguments"), (11, "end")]
    first = found.divergences[0]
    assert (first.step, first.effect) == (2, True)
    assert first.recorded == [{"call": "refund", "args": {"order_id": "o-1", "cents": 700}}]
    assert first.attempted == [{"call": "refund", "args": {"order_id": "o-1", "cents": 600}}]
    assert first.says == "A call of refund: args.cents is 700 as recorded, 600 as decided now."
    assert (found.compared, found.of, found.stopped_at) == (4, 4, None)


def test_a_flow_stops_where_its_moves_have_another_shape(recorded: list[Entry]) -> None:
    def shorter(run: RunView) -> Moves:
        yield Call(look, order_id=run.input)
        yield Call(mail, to="a@b.example")

    found = redecide(desk_of("2", shorter), recorded)
    assert told(found) == [(6, "decision")]
    assert (found.compared, found.of, found.stopped_at) == (2, 4, 6)
    assert found.divergences[0].says == "Recorded is a call of refund; decided now is a call of mail."


def test_a_decide_agent_is_compared_decision_by_decision_to_the_end() -> None:
    def one(state: RunView) -> Any:
        return Finish(len(state.calls)) if len(state.calls) == 3 else Call(look, order_id=f"o-{len(state.calls)}")

    def other(state: RunView) -> Any:
        return Finish("x") if len(state.calls) == 3 else Call(mail, to=f"o-{len(state.calls)}")

    entries = testing.run(Agent("steps", "1", tools=[look], decide=one), tools={"look": 1}).journal
    found = redecide(Agent("steps", "2", tools=[look, mail], decide=other), entries)
    assert told(found) == [(3, "decision"), (6, "decision"), (9, "decision"), (11, "end")]
    assert (found.compared, found.of) == (4, 4)


def test_a_tool_that_is_gone_is_named_also_where_a_flow_did_not_come(recorded: list[Entry]) -> None:
    def without(run: RunView) -> Moves:
        yield Call(look, order_id="another")
        yield Sleep(1)

    found = redecide(desk_of("2", without, (look, refund)), recorded)
    assert told(found) == [(3, "arguments"), (6, "decision"), (9, "missing_tool")]
    gone = found.divergences[-1]
    assert gone.attempted is None and gone.recorded == [{"call": "mail", "args": {"to": "a@b.example"}}]
    assert "desk@2 has no tool 'mail'" in gone.says and "refund" in gone.says


def test_the_way_of_a_call_is_compared_too(recorded: list[Entry]) -> None:
    @tool(effect="unkeyed", approval=Policy(group="finance", quorum=2), name="refund")
    def approved(ctx: ToolContext, order_id: str, cents: int) -> Any: ...

    @tool(effect="unkeyed", name="mail")
    def other_mail(ctx: ToolContext, to: str, subject: str) -> Any: ...

    found = redecide(desk_of("2", whole_desk, (look, approved, other_mail)), recorded)
    assert told(found) == [(6, "gate"), (9, "refused_arguments")]
    gate, refused = found.divergences
    assert gate.says == (
        "refund: its effect class was keyed and is unkeyed now; it was sent unasked, and would wait for approval by 2 "
        "of finance now."
    )
    assert gate.recorded == {"effect": "keyed", "approval": None} and gate.attempted["approval"]["quorum"] == 2
    assert refused.says == "mail does not take these arguments any more: subject: Field required."


def test_an_approval_that_is_not_asked_any_more_is_told() -> None:
    large = FAKES | {"look": {"id": "o-1", "cents": 9_000}}
    entries = testing.run(desk_of("1", whole_desk), "o-1", tools=large, approve=True).journal
    assert redecide(desk_of("1", whole_desk), entries).divergences == []

    @tool(effect="keyed", name="refund")
    def unasked(ctx: ToolContext, order_id: str, cents: int) -> Any: ...

    (gate,) = redecide(desk_of("2", whole_desk, (look, unasked, mail)), entries).divergences
    assert gate.kind == "gate" and gate.says.endswith("and would be sent unasked now.")


def test_what_a_person_changed_was_still_decided_by_the_agent() -> None:
    trial = testing.start(desk_of("1", whole_desk), "o-1", tools=FAKES | {"look": {"id": "o-1", "cents": 9_000}})
    trial.rest()
    trial.edit({"order_id": "o-1", "cents": 100}, "refund")
    trial.approve("refund")
    assert trial.status == "done" and trial.calls[1].args["cents"] == 100
    assert redecide(desk_of("1", whole_desk), trial.journal).divergences == []


def test_other_words_for_the_same_moves_are_a_divergence_in_text_only() -> None:
    def says(thought: str, plan: list[str]) -> Agent:
        def decide(state: RunView) -> Any:
            return Finish(1) if state.last else Call(look, order_id="o-1", thought=thought, plan=plan)

        return Agent("words", "1", tools=[look], decide=decide)

    entries = testing.run(says("look first", ["look"]), tools={"look": 1}).journal
    (text,) = redecide(says("look at once", ["look"]), entries).divergences
    assert (text.seq, text.kind, text.effect) == (2, "text", False)
    assert (
        text.recorded == {"plan": ["look"], "thought": "look first"}
        and text.says == "The same moves; the thought differs."
    )
    assert not redecide(says("x", ["y"]), entries).diverged
    assert redecide(says("x", ["y"]), entries).divergences[0].says == "The same moves; the plan and the thought differ."


def test_other_words_are_told_apart_from_other_arguments() -> None:
    def says(thought: str, order_id: str) -> Agent:
        def decide(state: RunView) -> Any:
            return Finish(1) if state.last else Call(look, order_id=order_id, thought=thought)

        return Agent("words", "1", tools=[look], decide=decide)

    entries = testing.run(says("look first", "o-1"), tools={"look": 1}).journal
    told = redecide(says("look at once", "o-2"), entries).divergences
    assert [(each.kind, each.effect) for each in told] == [("text", False), ("arguments", True)]
    assert told[0].says == "The thought differs too."


def every_move(run: RunView) -> Moves:
    got = yield WaitFor("go", timeout=60)
    said = yield Ask("how many?", int)
    won = yield First(Sleep(10), WaitFor("never"))
    both = yield [Call(look, order_id="a"), Call(look, order_id="b"), Sleep(1)]
    child = yield Spawn("child", {"n": said})
    yield []
    return [got, said, won.which, both[0], child, run.now.isoformat(), run.random("x"), len(run.calls)]


def child_code(run: RunView) -> Moves:
    return run.input["n"]
    yield


def test_every_kind_of_move_is_decided_again_alike_at_any_cut() -> None:
    agent = flow(name="every", version="1", tools=[look])(every_move)
    child = flow(name="child", version="1")(child_code)
    trial = testing.run(agent, tools={"look": 5}, signals={"go": 1}, answers={"how many?": 3}, agents=[child])
    trial.finish()
    assert trial.result[1:5] == [3, 0, 5, 3]
    entries = trial.journal
    assert redecide(agent, entries).divergences == []
    for at in range(1, len(entries) + 1):
        found = redecide(agent, entries, at=at)
        assert (found.divergences, found.compared) == ([], found.of), at


def test_a_flow_sees_its_run_as_it_was_at_each_yield() -> None:
    def counts(run: RunView) -> Moves:
        for _ in range(3):
            yield Call(look, order_id=f"{len(run.calls)} {run.last.result if run.last else None} {len(run.signals)}")
        return len(run.calls)

    agent = flow(name="counts", version="1", tools=[look])(counts)
    trial = testing.run(agent, tools={"look": testing.each(1, 2, 3)})
    assert redecide(agent, trial.journal).divergences == []
    testing.crash_everywhere(agent, tools={"look": lambda order_id: order_id})


def model(*answers: Any) -> Agent:
    def ask(state: RunView) -> tuple[Any, dict[str, Any]]:
        return answers[len(state.calls)], {"tokens": 10, "cost": 0.5}

    return Agent("talks", "1", tools=[look, mail], decide=FunctionModel(ask))


def test_what_a_model_said_is_used_and_never_asked_for() -> None:
    entries = testing.run(model(Call(look, order_id="a"), Finish("x")), tools={"look": 1}).journal

    def ask(state: RunView) -> Any:
        raise AssertionError("a replay asked the model")

    found = redecide(Agent("talks", "2", tools=[mail], decide=FunctionModel(ask)), entries)
    assert told(found) == [(4, "missing_tool")] and (found.compared, found.of) == (2, 2)


def test_what_code_decided_no_model_has_decided(recorded: list[Entry]) -> None:
    found = redecide(Agent("desk", "2", tools=[look, refund, mail], decide=model().decide), recorded)
    assert [each.kind for each in found.divergences] == ["decision", "decision", "decision"]
    assert "a model decides, which was not asked" in found.divergences[0].says


def test_an_erased_entry_ends_what_can_be_compared_and_is_named(recorded: list[Entry]) -> None:
    gone = [replace(e, body={"$": "erased", "digest": "0"}) if e.seq == 7 else e for e in recorded]
    found = redecide(desk_of("1", whole_desk), gone)
    assert (told(found), found.compared, found.stopped_at) == ([], 2, 7)
    assert found.stopped_why == f"the {gone[6].kind} there is erased"
    assert redecide(desk_of("1", whole_desk), [replace(recorded[0], body={"$": "erased"}), *recorded[1:]]).compared == 0


def test_an_entry_that_this_code_cannot_read_ends_it_too(recorded: list[Entry]) -> None:
    later = [*recorded[:4], replace(recorded[4], kind="LATER", body={"critical": True}), *recorded[5:]]
    found = redecide(desk_of("1", whole_desk), later)
    assert (found.compared, found.stopped_at, found.stopped_why) == (1, 5, "this code cannot read the LATER there")
    passed_over = [*recorded, replace(recorded[-1], kind="LATER", seq=len(recorded) + 1, body={})]
    assert redecide(desk_of("1", whole_desk), passed_over).divergences == []


def test_what_an_agent_raises_is_its_decision_wherever_the_line_has_gone_to() -> None:
    def raises(state: RunView) -> Any:
        raise KeyError("gone")

    def raises_too(state: RunView) -> Any:
        nothing = None
        raise KeyError("gone") from nothing

    def other(state: RunView) -> Any:
        raise KeyError("another")

    entries = testing.run(Agent("raises", "1", decide=raises)).journal
    assert redecide(Agent("raises", "1", decide=raises_too), entries).divergences == []
    assert told(redecide(Agent("raises", "1", decide=other), entries)) == [(2, "end")]
    found = redecide(Agent("raises", "1", decide=lambda state: Fail("said")), entries)
    assert told(found) == [(2, "end")]
    assert found.divergences[0].says.startswith("The run would end otherwise. ")


def test_a_note_behind_the_end_hides_no_end(recorded: list[Entry]) -> None:
    def otherwise(run: RunView) -> Moves:
        yield from whole_desk(run)
        return "another"

    noted = [*recorded, replace(recorded[-1], seq=len(recorded) + 1, kind=Kind.NOTE, body={"text": "forked"})]
    assert told(redecide(desk_of("2", otherwise), noted)) == [(11, "end")]


def test_a_cancelled_run_has_no_end_of_its_own_to_compare() -> None:
    trial = testing.start(desk_of("1", whole_desk), "o-1", tools=FAKES | {"look": {"id": "o-1", "cents": 9_000}}).rest()
    trial.cancel("not needed")
    assert trial.status == "cancelled"
    found = redecide(desk_of("1", whole_desk), trial.journal)
    assert (found.divergences, found.compared, found.of) == ([], 2, 2)


def test_edits_take_the_place_of_what_is_recorded(recorded: list[Entry]) -> None:
    changed = edited(recorded, [{"seq": 4, "value": {"id": "o-1", "cents": 9}}])
    (first,) = redecide(desk_of("1", whole_desk), changed).divergences
    assert (first.seq, first.kind) == (6, "arguments")
    assert recorded[3].body["result"]["cents"] == 700
    for wrong in (3, 0, 99):
        with pytest.raises(ValueError, match=f"entry {wrong}"):
            edited(recorded, [{"seq": wrong, "value": 1}])


def test_whoever_decides_is_watched_before_each_decision(recorded: list[Entry]) -> None:
    seen: list[int] = []
    redecide(desk_of("1", whole_desk), recorded, watch=seen.append)
    decisions = [seq for seq in seen if recorded[seq - 1].kind in (Kind.PLAN, Kind.DONE)]
    assert decisions == [2, 5, 8, 11], "and the tools' own words on each call between"


def test_an_argument_that_contains_itself_compares_as_it_was_described() -> None:
    def code(run: RunView) -> Moves:
        loop: list[Any] = [1]
        loop.append(loop)
        try:
            yield Call(look, order_id=loop)
        except CallFailed:
            return "refused"

    agent = flow(name="loops", version="1", tools=[look])(code)
    assert redecide(agent, testing.run(agent, tools={"look": 1}).journal).divergences == []
