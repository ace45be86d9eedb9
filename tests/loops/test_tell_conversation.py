"""What the model is told: results in the order of its calls, each as it ended, and what people said behind them."""

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from pydantic_ai.messages import ToolReturnPart, UserPromptPart

from journal.encoding import decode, encode
from journal.entries import Kind
from runs.loops.conversation import turns_of
from runs.loops.messages import messages_of, parameters_of
from runs.loops.readable import text_of
from runs.secrets import seal
from tests.loops.journals import Journal, loop_of, worked

TEXT = {"moves": [{"finish": "Done."}], "finish": "stop", "usage": {}}


def response(*ids: str, text: str = "") -> dict[str, Any]:
    calls = [{"part_kind": "tool-call", "tool_name": "lookup", "tool_call_id": id, "args": "{}"} for id in ids]
    return {"kind": "response", "parts": [*([{"part_kind": "text", "content": text}] if text else []), *calls]}


def said(*ids: str, **more: Any) -> dict[str, Any]:
    moves = [{"call": "lookup", "args": {"order": id}, "id": id} for id in ids]
    return {"moves": moves, "response": response(*ids), "finish": "tool_call", "usage": {}} | more


def told(journal: Journal) -> list[tuple[str, str, str]]:
    return [(turn.by, turn.outcome, str(turn.content)) for turn in turns_of(journal.state) if turn.by != "model"]


def test_results_come_in_the_order_of_the_calls() -> None:
    journal = Journal(loop_of())
    journal.say(said("a", "b", "c"))
    journal.settle(lambda step: {"outcome": "succeeded", "result": step})
    assert told(journal)[1:] == [("tool", "success", "1"), ("tool", "success", "2"), ("tool", "success", "3")]


def test_each_outcome_is_told_as_what_it_is() -> None:
    journal = Journal(loop_of())
    journal.say(said("a", "b", "c", "d"))
    ends = ["denied", "failed", "expired", "cancelled"]
    journal.settle(lambda step: {"outcome": ends[step - 1], "error": "so it is"})
    found = told(journal)[1:]
    assert [outcome for _, outcome, _ in found] == ["denied", "failed", "interrupted", "interrupted"]
    assert found[0][2] == "A person refused this call. Reason: so it is"
    assert all("so it is" in text for _, _, text in found)


def test_nobody_is_told_of_a_call_that_is_not_settled() -> None:
    journal = Journal(loop_of())
    journal.say(said("a"))
    journal.add(Kind.OBS, {"outcome": "unknown", "error": "lost", "source": "worker"}, step=1)
    assert len(told(journal)) == 1


def test_a_person_s_arguments_are_told_with_the_result() -> None:
    journal = Journal(loop_of())
    journal.say(said("a"))
    requested = {"verdict": "requested", "digest": "d", "note": ""}
    journal.add(Kind.APPROVAL, requested, step=1)
    edited = {"verdict": "edited", "digest": "d", "note": "", "args": {"order": "o-2"}}
    journal.add(Kind.APPROVAL, edited, step=1, actor="user:ada")
    journal.settle(lambda step: {"outcome": "succeeded", "result": "fine"})
    assert told(journal)[1][2] == 'A person changed the arguments to {"order": "o-2"}. fine'


def test_signals_come_behind_the_results_in_front_of_the_answer_that_heard_them() -> None:
    journal = Journal(loop_of())
    asked = journal.attempt("anthropic:m")
    journal.signal("message", "early")  # the request was under way already
    journal.add(Kind.PLAN, {"seen": asked.seq, "asked": asked.seq} | said("a"), actor="model")
    journal.intend(said("a"))
    journal.signal("paid", {"cents": 5})
    journal.settle(worked)
    order = [(turn.by, str(turn.content)[:20]) for turn in turns_of(journal.state)]
    assert [by for by, _ in order] == ["person", "model", "tool", "person", "person"]
    assert [text for _, text in order[3:]] == ["early", 'Signal paid: {"cents']


def test_an_ending_that_was_overtaken_gets_its_answer() -> None:
    journal = Journal(loop_of(output=int))
    call = {"part_kind": "tool-call", "tool_name": "final_result", "tool_call_id": "f", "args": '{"result": 5}'}
    journal.say({"moves": [{"finish": 5}], "response": {"kind": "response", "parts": [call]}, "finish": "tool_call"})
    journal.signal("message", "wait")
    last = messages_of(journal.agent.content, journal.state)[-1]
    assert isinstance(last.parts[0], ToolReturnPart)
    assert "goes on" in str(last.parts[0].content)
    assert isinstance(last.parts[1], UserPromptPart)


def test_a_refused_answer_is_not_shown_to_the_next_model() -> None:
    journal = Journal(loop_of())
    journal.say({"moves": [], "response": response(text="No."), "finish": "content_filter", "usage": {}})
    assert [turn.by for turn in turns_of(journal.state)] == ["person"]


def test_corrections_are_told() -> None:
    journal = Journal(loop_of())
    reply = {"id": "a", "tool": "lookup", "outcome": "retried", "content": "no", "cause": "arguments", "attempt": 2}
    journal.say({"moves": [], "response": response("a"), "finish": "stop", "usage": {}, "replies": [reply]})
    journal.say(
        {"moves": [], "response": response(), "finish": "stop", "usage": {}, "feedback": "Your answer was empty."}
    )
    found = [turn for turn in turns_of(journal.state) if turn.by in ("tool", "loop")]
    assert [(turn.outcome, turn.cause, turn.attempt) for turn in found] == [
        ("retried", "arguments", 2),
        ("success", "output", 1),
    ]
    last = messages_of(journal.agent.content, journal.state)[-1].parts[0]
    assert isinstance(last, UserPromptPart)
    assert "not written by a person" in str(last.content)


def test_values_are_told_as_people_write_them_in_memory_and_read_again() -> None:
    value = {
        "at": datetime(2026, 1, 1, tzinfo=UTC),
        "sum": Decimal("1.50"),
        "key": seal("x"),
        "of": {3, 1, 2},
        "n": 2**70,
    }
    text = text_of(value)
    assert text == (
        '{"at": "2026-01-01T00:00:00+00:00", "sum": "1.50", "key": "[secret]", "of": [1, 2, 3],'
        ' "n": 1180591620717411303424}'
    )
    assert text_of(decode(encode(value))) == text
    assert text_of("half \ud83d") == "half �"


def test_only_what_came_until_then_is_told() -> None:
    journal = Journal(loop_of())
    journal.say(said("a"))
    journal.settle(worked)
    journal.signal("message", "later")
    assert [turn.by for turn in turns_of(journal.state, 1)] == ["person"]
    assert [turn.by for turn in turns_of(journal.state, len(journal.entries) - 1)] == ["person", "model", "tool"]


def test_the_context_is_a_part_of_the_prompt() -> None:
    journal = Journal(loop_of())
    journal.attempt("anthropic:m", context="It is Monday.")
    parts = parameters_of(journal.agent.content, journal.state.context).instruction_parts or []
    assert [(part.content[:10], part.dynamic) for part in parts] == [("You refund", False), ("It is Mond", True)]


def test_tools_are_the_same_however_the_release_was_stored() -> None:
    content = journal_content = Journal(loop_of(output=dict[str, int])).agent.content
    shuffled = json.loads(json.dumps(journal_content, sort_keys=True))
    assert parameters_of(shuffled, None) == parameters_of(content, None)
    names = [t.name for t in parameters_of(content, None).function_tools]
    assert names == ["lookup", "mail", "refund", "update_plan"]
