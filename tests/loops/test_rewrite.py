"""An edited answer: the conversation says what the moves say."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from journal.entries import Entry, Kind
from runs.edits import CannotEdit, edited
from runs.loops.rewritten import NotInAConversation, rewritten

LOOK = {"call": "look", "args": {"order_id": "o-1"}, "id": "c1"}
REFUND = {"call": "refund", "args": {"order_id": "o-1", "cents": 700}, "id": "c2"}


def part(move: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"tool_name": move["call"], "args": json.dumps(move["args"]), "tool_call_id": move["id"], **more,
            "part_kind": "tool-call"}  # fmt: skip


TEXT = {"content": "I look first.", "part_kind": "text"}
THOUGHT = {"content": "hm", "signature": "s", "part_kind": "thinking"}
PLANNED = {"tool_name": "update_plan", "args": "{}", "tool_call_id": "p1", "part_kind": "tool-call"}


def said(*parts: dict[str, Any], moves: Any = (LOOK, REFUND), provider: str = "openai") -> dict[str, Any]:
    return {"seen": 2, "asked": 2, "moves": list(moves), "response": {"parts": list(parts), "provider_name": provider}}


def parts_of(body: dict[str, Any], *moves: dict[str, Any]) -> list[dict[str, Any]]:
    return list(rewritten(3, body, moves)["response"]["parts"])


def test_what_stays_is_not_touched() -> None:
    body = said(THOUGHT, TEXT, part(LOOK, id="fc_1"), PLANNED, part(REFUND))
    assert rewritten(3, body, body["moves"]) == {"moves": body["moves"], "response": body["response"]}


def test_changed_arguments_keep_their_place_and_id_and_lose_what_the_provider_called_the_part() -> None:
    body = said(THOUGHT, TEXT, part(LOOK, id="fc_1", provider_name="openai"), PLANNED, part(REFUND))
    less = REFUND | {"args": {"order_id": "o-1", "cents": 7}}
    changed = parts_of(body, LOOK, less)
    assert changed == [TEXT, part(LOOK, id=None, provider_name="openai"), PLANNED, part(less)]
    other = parts_of(body, LOOK | {"args": {"order_id": "o-2"}}, REFUND)[1]
    assert (other["id"], json.loads(other["args"]), other["tool_call_id"]) == (None, {"order_id": "o-2"}, "c1")


def test_calls_that_are_gone_are_gone_and_new_ones_get_an_id() -> None:
    body = said(TEXT, part(LOOK), part(REFUND))
    made = rewritten(3, body, [REFUND, {"call": "mail", "args": {"to": "a"}}, LOOK | {"id": "c2"}])
    assert [move["id"] for move in made["moves"]] == ["c2", "edited_3_2", "edited_3_3"]
    assert [each.get("tool_call_id") for each in made["response"]["parts"]] == [None, "c2", "edited_3_2", "edited_3_3"]


def test_a_signed_thought_stays_where_the_provider_refuses_an_answer_without_it() -> None:
    body = said(THOUGHT, part(LOOK), moves=[LOOK], provider="anthropic")
    assert parts_of(body, REFUND)[0] == THOUGHT and len(parts_of(body, REFUND)) == 2


def test_an_id_that_was_answered_at_once_is_no_moves() -> None:
    body = said(PLANNED, part(LOOK), moves=[LOOK]) | {"replies": [{"id": "p1", "tool": "update_plan"}]}
    made = rewritten(3, body, [LOOK | {"id": "p1"}])
    assert [move["id"] for move in made["moves"]] == ["edited_3_1"] and made["response"]["parts"][0] == PLANNED


def test_an_end_is_put_in_place_of_calls_and_calls_in_place_of_an_end() -> None:
    assert parts_of(said(TEXT, part(LOOK), PLANNED, moves=[LOOK]), {"finish": "No refund."}) == [
        PLANNED, {"content": "No refund.", "part_kind": "text"},
    ]  # fmt: skip
    result = {"call": "final_result", "args": {"refunded": True}, "id": "f1"}
    ended = said(TEXT, part(result), moves=[{"finish": {"refunded": True}}])
    assert json.loads(parts_of(ended, {"finish": {"refunded": False}})[1]["args"]) == {"refunded": False}
    assert [each.get("tool_name") for each in parts_of(ended, LOOK)] == [None, "look"]


def test_other_moves_are_no_part_of_a_conversation() -> None:
    wrongs: list[Any] = [[{"sleep": 5}], [LOOK, {"finish": 1}], [{"fail": "no"}]]
    for wrong in wrongs:
        with pytest.raises(NotInAConversation):
            rewritten(3, said(TEXT), wrong)
    body = said(TEXT, part(LOOK), moves=[LOOK])
    entry = Entry(UUID(int=1), 1, Kind.PLAN, 1, None, None, 1, "model", datetime(2026, 1, 1, tzinfo=UTC), body)
    with pytest.raises(CannotEdit, match="In a conversation"):
        edited([entry], [{"seq": 1, "value": [{"sleep": 5}]}])
    assert edited([entry], [{"seq": 1, "value": [{"finish": "x"}]}])[0].body["moves"] == [{"finish": "x"}]


# -- whatever is edited -----------------------------------------------------------------------------------------------

IDS = st.sampled_from(["c1", "c2", "c3", "c4", None])
MOVES = st.builds(
    lambda tool, n, id: {"call": tool, "args": {"n": n}} | ({"id": id} if id is not None else {}),
    st.sampled_from(["look", "refund"]), st.integers(0, 3), IDS,
)  # fmt: skip
ANSWERS = st.lists(MOVES.filter(lambda move: "id" in move), max_size=4, unique_by=lambda move: str(move["id"]))


BESIDE = st.lists(st.sampled_from([TEXT, THOUGHT, PLANNED]), max_size=3)
PROVIDERS = st.sampled_from(["openai", "anthropic"])


@given(ANSWERS, st.lists(MOVES, min_size=1, max_size=5), BESIDE, PROVIDERS)
def test_the_calls_of_the_answer_are_the_moves(before: Any, now: Any, beside: Any, provider: str) -> None:
    beside = [each for at, each in enumerate(beside) if each is not PLANNED or PLANNED not in beside[:at]]
    made = rewritten(9, said(*beside, *map(part, before), moves=before, provider=provider), now)
    told = {each["tool_call_id"]: each for each in made["response"]["parts"] if each["part_kind"] == "tool-call"}
    ids = [move["id"] for move in made["moves"]]
    assert len(set(ids)) == len(ids) == len(now) and set(told) - {"p1"} == set(ids)
    for move in made["moves"]:
        args = told[move["id"]]["args"]
        assert (told[move["id"]]["tool_name"], json.loads(args) if isinstance(args, str) else args) == (
            move["call"], move["args"],
        )  # fmt: skip
    again = rewritten(9, made, made["moves"])
    assert (again["moves"], again["response"]) == (made["moves"], made["response"]), "once is enough"
    assert ("p1" in told) is (PLANNED in beside)
