"""An answer becomes moves, replies, a plan: whatever a model says, and it never raises."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as examples
from hypothesis import strategies as st
from pydantic import BaseModel, field_validator
from pydantic_ai import ModelResponse
from pydantic_ai.durable_exec import JSON_CODEC
from pydantic_ai.messages import ModelResponsePart, TextPart, ThinkingPart, ToolCallPart
from pydantic_ai.usage import RequestUsage

from journal.encoding import decode, encode, problems
from runs.loops.answers import plan_of
from runs.loops.asking import Answer
from runs.loops.conversation import turns_of
from runs.loops.messages import messages_of
from runs.loops.policy import Ask, next_request
from runs.model_turns import NeedsPerson
from runs.sdk import Secret, ToolContext, tool
from tests.loops.journals import TOOLS, Journal, agent_of, loop_of, worked


class Verdict(BaseModel):
    reason: str
    cents: int

    @field_validator("cents")
    @classmethod
    def positive(cls, cents: int) -> int:
        if cents < 0:
            raise ValueError("cents are not negative")
        return cents


@tool(effect="keyed")
def pay(ctx: ToolContext, card: Secret[str], cents: int) -> Any:
    """Pay."""


def answered(
    parts: Sequence[ModelResponsePart], finish: Any = "stop", journal: Journal | None = None, **given: Any
) -> Any:
    journal = journal or Journal(loop_of(**given), agent=agent_of(loop_of(**given), *TOOLS, pay))
    usage = RequestUsage(input_tokens=10, output_tokens=5)
    response = ModelResponse(
        parts=list(parts), finish_reason=finish, usage=usage, model_name="claude-haiku-4-5-20251001",
        provider_name="anthropic",
    )  # fmt: skip
    answer = Answer(response, JSON_CODEC.dump(ModelResponse, response), "anthropic:m", 0.5, "req_1")
    body = plan_of(journal.agent, journal.loop, journal.state, answer)
    assert not problems(body)
    journal.say(body)
    messages_of(journal.agent.content, journal.state)
    return body


def call(name: str, args: Any, id: str = "c1") -> ToolCallPart:
    return ToolCallPart(name, args, id)


def test_text_ends_a_run_whose_output_is_text() -> None:
    body = answered([ThinkingPart("Hm."), TextPart("Done.")])
    assert body["moves"] == [{"finish": "Done."}]
    assert body["thought"] == "Hm."
    assert "replies" not in body
    assert body["usage"] == {
        "requests": 1, "input_tokens": 10, "output_tokens": 5, "cache_read_tokens": 0, "cache_write_tokens": 0,
        "reasoning_tokens": 0, "cost": float(body["cost"]),
    }  # fmt: skip
    assert body["prices"].startswith("genai-prices ")
    assert (body["model"], body["provider"], body["request_id"]) == ("claude-haiku-4-5-20251001", "anthropic", "req_1")


def test_calls_become_moves_with_their_ids() -> None:
    paid = call("refund", {"order": "o", "cents": 1e2}, "c2")
    body = answered([TextPart("I look."), call("lookup", '{"order": "o-1"}'), paid])
    assert body["moves"] == [
        {"call": "lookup", "args": {"order": "o-1"}, "id": "c1"},
        {"call": "refund", "args": {"order": "o", "cents": 1e2}, "id": "c2"},
    ]
    assert body["thought"] == "I look."


def test_a_tool_may_have_a_parameter_named_id() -> None:
    body = answered([call("refund", {"order": "o", "cents": 1, "id": "r-9"})])
    assert body["moves"][0]["args"]["id"] == "r-9"


@pytest.mark.parametrize(
    ("part", "cause", "says"),
    [
        (call("lookup", '{"order": '), "arguments", "not valid JSON"),
        (call("lookup", "[1]"), "arguments", "a JSON object"),
        (call("lookup", "{}"), "arguments", "order: Field required"),
        (call("lookup", {"order": "o", "deepest": 1}), "arguments", "deepest: Extra inputs"),
        (call("look_up", "{}"), "unknown_tool", "There is no tool 'look_up'. The tools are: lookup, mail"),
        (call("update_plan", {"done": "all"}), "arguments", "done is a list of texts"),
        (call("final_result", {}), "unknown_tool", "There is no tool"),
    ],
)
def test_what_cannot_be_called_is_a_reply(part: ToolCallPart, cause: str, says: str) -> None:
    body = answered([part, call("lookup", {"order": "o"}, "c2")])
    assert [move["id"] for move in body["moves"]] == ["c2"]
    [reply] = body["replies"]
    assert (reply["outcome"], reply["cause"], reply["attempt"], reply["id"]) == ("retried", cause, 1, "c1")
    assert says in reply["content"]


def test_corrections_in_a_row_are_counted() -> None:
    journal = Journal(loop_of())
    for attempt in (1, 2):
        [reply] = answered([call("lookup", "{}")], journal=journal)["replies"]
        assert reply["attempt"] == attempt
    answered([call("lookup", {"order": "o"})], journal=journal)
    journal.settle(worked)
    [reply] = answered([call("lookup", "{}")], journal=journal)["replies"]
    assert reply["attempt"] == 1


def test_the_plan_is_noted_beside_other_calls() -> None:
    told = {"done": ["looked"], "next": ["pay", "write"], "decided": ["all of it"]}
    body = answered([call("update_plan", told), call("lookup", {"order": "o"}, "c2")])
    assert body["plan"] == [{"done": "looked"}, {"next": "pay"}, {"later": "write"}, {"decided": "all of it"}]
    assert [(r["id"], r["outcome"]) for r in body["replies"]] == [("c1", "answered")]
    assert len(body["moves"]) == 1


def test_a_typed_result_is_validated() -> None:
    body = answered([call("final_result", '{"reason": "broken", "cents": "5"}')], output=Verdict)
    assert body["moves"] == [{"finish": {"reason": "broken", "cents": 5}}]
    body = answered([call("final_result", {"reason": "broken", "cents": -5})], output=Verdict)
    assert body["moves"] == []
    assert "cents are not negative" in body["replies"][0]["content"]
    assert body["replies"][0]["cause"] == "output"


def test_a_result_that_is_no_object_is_wrapped() -> None:
    assert answered([call("final_result", {"result": [1, 2]})], output=list[int])["moves"] == [{"finish": [1, 2]}]
    assert "missing" in answered([call("final_result", {})], output=list[int])["replies"][0]["content"]


def test_text_does_not_end_a_run_with_a_typed_result() -> None:
    body = answered([TextPart("I am done.")], output=Verdict)
    assert body["moves"] == []
    assert "final_result" in body["feedback"]


def test_a_result_beside_calls_waits_for_their_results() -> None:
    parts = [call("lookup", {"order": "o"}), call("final_result", {"reason": "r", "cents": 1}, "c2")]
    body = answered(parts, output=Verdict)
    assert [next(iter(move)) for move in body["moves"]] == ["call"]
    assert [(reply["id"], reply["outcome"]) for reply in body["replies"]] == [("c2", "answered")]


def test_the_first_of_several_results_ends_the_run() -> None:
    parts = [call("final_result", {"reason": r, "cents": 1}, f"c{r}") for r in "ab"]
    assert answered(parts, output=Verdict)["moves"] == [{"finish": {"reason": "a", "cents": 1}}]


def test_of_calls_with_one_id_the_first_is_made() -> None:
    body = answered([call("lookup", {"order": o}) for o in ("o-1", "o-2", "o-3")])
    assert [move["args"]["order"] for move in body["moves"]] == ["o-1"]
    assert [reply["id"] for reply in body["replies"]] == ["c1-2", "c1-3"]
    assert [part["tool_call_id"] for part in body["response"]["parts"]] == ["c1", "c1-2", "c1-3"]


@pytest.mark.parametrize(
    ("parts", "finish", "says"),
    [([], "stop", "empty"), ([TextPart("  ")], "stop", "empty"), ([TextPart("Half a")], "length", "cut off")],
)
def test_what_is_no_answer_gets_feedback(parts: list[Any], finish: str, says: str) -> None:
    body = answered(parts, finish)
    assert body["moves"] == []
    assert says in body["feedback"]


def test_a_refusal_makes_no_moves_and_says_so() -> None:
    body = answered([TextPart("I cannot"), call("lookup", {"order": "o"})], "content_filter")
    assert body["moves"] == []
    assert body["finish"] == "content_filter"
    assert "feedback" not in body


def test_a_secret_is_sealed_in_the_move_and_struck_in_the_response() -> None:
    body = answered([TextPart('The card is 4111"11.'), call("pay", '{"card": "4111\\"11", "cents": 5}')])
    assert repr(body["moves"][0]["args"]["card"]) == "[secret]"
    assert "4111" not in repr(body["response"])
    assert "4111" not in body["thought"]
    assert decode(encode(body)) == body


def test_what_matches_the_pattern_is_struck(settings: Any) -> None:
    settings.HOLDFAST_REDACT = r"sk-\d+"
    body = answered([ThinkingPart("sk-123"), TextPart("The key is sk-123.")])
    assert "sk-123" not in repr(body)
    assert body["moves"] == [{"finish": "The key is [secret]."}]


def test_what_holds_a_conversation_together_is_not_struck(settings: Any) -> None:
    settings.HOLDFAST_REDACT = r"\d{4}"
    journal = Journal(loop_of())
    signed = ThinkingPart("Pin 1234", signature="sig1234", provider_name="anthropic")
    body = answered([signed, call("lookup", {"order": "o"}, "c1234"), call("lookup", "{}", "c5678")], journal=journal)
    assert [part["content"] for part in body["response"]["parts"][:1]] == ["Pin [secret]"]
    assert body["response"]["parts"][0]["signature"] == "sig1234"
    named = answered([call("mail", {"id": "1234"})])
    assert named["response"]["parts"][0]["args"] == {"id": "[secret]"}
    journal.settle(worked)
    told = {turn.id: turn.outcome for turn in turns_of(journal.state) if turn.by == "tool"}
    assert told == {"c1234": "success", "c5678": "retried"}


def test_a_validator_that_breaks_is_a_correction() -> None:
    class Breaks(BaseModel):
        word: str

        @field_validator("word")
        @classmethod
        def breaks(cls, word: str) -> str:
            raise RuntimeError("validators of others")

    body = answered([call("final_result", {"word": "x"})], output=Breaks)
    assert "validators of others" in body["replies"][0]["content"]


def texts(most: int) -> st.SearchStrategy[str]:
    """Lone surrogates and NUL among them."""
    return st.text(st.characters(exclude_categories=()), max_size=most)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts(5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts(5) | st.just("$"), inner, max_size=3),
    max_leaves=8,
)
NAMES = st.sampled_from(["lookup", "refund", "mail", "pay", "update_plan", "final_result"]) | texts(300)
CALLS = st.builds(call, NAMES, st.dictionaries(texts(6), JSON, max_size=4) | texts(20), texts(4))
PARTS = st.lists(st.builds(TextPart, texts(20)) | st.builds(ThinkingPart, texts(20)) | CALLS, max_size=5)


@examples(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(PARTS, st.sampled_from(["stop", "length", "tool_call", "content_filter", "error", None]), st.booleans())
def test_nothing_that_a_model_says_raises(parts: list[Any], finish: Any, typed: bool) -> None:
    body = answered(parts, finish, **({"output": Verdict} if typed else {}))
    assert finish == "content_filter" or body["moves"] or body.get("replies") or body.get("feedback")


def test_an_answer_in_which_the_provider_paused_is_gone_on_with() -> None:
    journal = Journal(loop_of())
    paused = ModelResponse(parts=[TextPart("I look it up.")], finish_reason="stop", state="suspended")
    stored = JSON_CODEC.dump(ModelResponse, paused)
    body = plan_of(journal.agent, journal.loop, journal.state, Answer(paused, stored, "anthropic:m", 0.5))
    assert (body["moves"], body.get("feedback")) == ([], None)
    journal.say(body)
    assert isinstance(messages_of(journal.agent.content, journal.state)[-1], ModelResponse)
    for _ in range(10):
        assert isinstance(next_request(journal.loop, journal.state, 0.0, 1), Ask)
        journal.say(body)
    assert isinstance(next_request(journal.loop, journal.state, 0.0, 1), NeedsPerson)
    answered([TextPart("Found it.")], journal=journal)
    assert len(messages_of(journal.agent.content, journal.state)) == 14


PASSWORD = "hunter2-is-long"


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("pay", f'{{"card": "{PASSWORD}", "cents": 5'),
        ("pay", f'{{"card": "{PASSWORD[:9]}'),
        ("pay", f'["{PASSWORD}"]'),
        ("pay", f'{{"Card": "{PASSWORD}", "cents": 5}}'),
        ("pay", {"card": {"number": PASSWORD}, "cents": "x"}),
        ("pay", {"cents": PASSWORD}),
        ("pay", f"card={PASSWORD}"),
        ("pay_", {"card": PASSWORD}),
        ("pay_", f'{{"card": "{PASSWORD}'),
    ],
)
@pytest.mark.parametrize("finish", ["tool_call", "length", "content_filter"])
def test_a_call_that_is_not_taken_keeps_nothing_that_may_be_secret(name: str, args: Any, finish: str) -> None:
    body = answered([TextPart("I pay."), call(name, args)], finish)
    assert body["moves"] == []
    assert PASSWORD[:9] not in repr(body)


def test_the_second_call_of_one_id_keeps_no_secret() -> None:
    parts = [call("lookup", {"order": "o"}), call("pay", {"card": PASSWORD, "cents": 5}), TextPart(PASSWORD)]
    body = answered(parts)
    assert [move["call"] for move in body["moves"]] == ["lookup"]
    assert PASSWORD not in repr(body)


@pytest.mark.parametrize("word", ['pa"ss\\x', "two\nlines", "grün€-and-more"])
@pytest.mark.parametrize("ascii_only", [True, False])
def test_a_secret_is_struck_in_other_calls_however_it_is_spelled(word: str, ascii_only: bool) -> None:
    def text(**args: Any) -> str:
        return json.dumps(args, ensure_ascii=ascii_only)

    other = text(to="olga", text=f"It is {word}.", more=[text(again=word)])
    parts = [call("pay", text(card=word, cents=5)), call("mail", other, "c2"), call("mail", other[:-3], "c3")]
    body = answered(parts)
    for spelled in (word, json.dumps(word)[1:-1], json.dumps(word, ensure_ascii=False)[1:-1]):
        assert spelled not in json.dumps(body["response"], ensure_ascii=False)
        assert spelled not in str([part.get("args") for part in body["response"]["parts"]])
    assert json.loads(body["response"]["parts"][1]["args"])["to"] == "olga"
