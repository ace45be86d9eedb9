"""Whatever stands in a journal, the next request of each protocol is one that its provider takes."""

import json
from typing import Any

import pytest

from demo.providers.turns import Call, call, say, think, turn
from runs import testing
from runs.loops import asking
from runs.loops.messages import messages_of
from runs.loops.sendable import id_of_call, is_sendable_name, name_of_tool
from tests.loops.journals import PROTOCOLS, Journal, loop_of, worked
from tests.loops.test_run import desk, environment, run
from tests.rig.providers import Providers

__all__ = ["environment"]

LOOK = '{"order": "o-1"}'
ODD = {
    "not a number": turn(Call("lookup", '{"order": NaN}')),
    "no end": turn(Call("lookup", '{"order": "o-1", "more": [{"a": -Infinity, "b": 1e999}]}')),
    "a dotted name": turn(Call("functions.lookup", LOOK)),
    "an odd name": turn(Call("bad name! ü", LOOK), Call("", LOOK)),
    "a long name": turn(Call("n" * 100_000, LOOK)),
    "a long id": turn(Call("lookup", LOOK, id="c" * 5_000), Call("lookup", LOOK, id="c" * 5_001)),
    "an odd id": turn(
        Call("lookup", LOOK, id="id.1"), Call("lookup", LOOK, id="id 1"), Call("lookup", LOOK, id="ü|fc")
    ),
    "one id twice": turn(Call("lookup", LOOK, id="c" * 64), Call("lookup", LOOK, id="c" * 64)),
    "a list": turn(Call("lookup", "[1]")),
    "a number": turn(Call("lookup", "5")),
    "half of it": turn(Call("lookup", '{"order": "o')),
    "deep": turn(Call("lookup", '{"order": ' + "[" * 150 + "]" * 150 + "}")),
    "deeper": turn(Call("lookup", '{"order": ' + "[" * 3_000 + "]" * 3_000 + "}")),
    "a long number": turn(Call("lookup", '{"order": ' + "9" * 4_000 + "}")),
    "half a character": turn(Call("lookup", '{"order": "\\ud800"}'), say("\ud800")),
    "nothing": turn(),
    "blank": turn(say(" \n ")),
    "a thought alone": turn(think("Hm.")),
    "a blank beside a call": turn(say(""), say("  "), call("lookup", order="o-1")),
    "a thought at the end": turn(call("lookup", order="o-1"), think("Hm.")),
    "nul": turn(Call("lookup", '{"order": "\\u0000"}')),
}


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("model", PROTOCOLS)
def test_an_odd_answer_can_be_told_again(providers: Providers, model: str, odd: str, stream: bool) -> None:
    providers.script("m", lambda asked: ODD[odd] if len(providers.requests) == 1 else "Done.")
    trial = run(desk(f"{model}:m", stream=stream))
    assert trial.result == "Done.", (trial.status, trial.reason)
    assert [seen.status for seen in providers.requests] == [200, 200]


def test_ids_stay_apart_however_they_are_cut() -> None:
    ids = ["c" * 41, "c" * 42, "a.b", "a b", "a_b", "ü", "x" * 40]
    assert len({id_of_call(id) for id in ids}) == len(ids)
    assert all(len(id_of_call(id)) <= 40 for id in ids)
    assert id_of_call("toolu_01A09q90qw90lq917835lq9") == "toolu_01A09q90qw90lq917835lq9"
    assert all(is_sendable_name(name_of_tool(name)) for name in ("", "functions.lookup", "n" * 65, "ü"))


@pytest.mark.parametrize("words", ["", "  \n"])
@pytest.mark.parametrize("model", PROTOCOLS)
def test_blank_words_of_people_and_tools_can_be_told(providers: Providers, model: str, words: str) -> None:
    providers.script("m", lambda asked: call("lookup", order="o-1") if not asked.calls else "Done.")
    trial = testing.run(desk(f"{model}:m"), words, tools={"lookup": words, "refund": 1}, model=testing.REAL)
    assert trial.result == "Done.", (trial.status, trial.reason)


@pytest.mark.parametrize("second", PROTOCOLS)
@pytest.mark.parametrize("first", PROTOCOLS)
def test_a_conversation_goes_from_one_model_to_another_and_back(providers: Providers, first: str, second: str) -> None:
    """What a model thought is signed, and no other model takes it."""
    answers = lambda asked: (  # noqa: E731
        turn(think(f"Thought of {asked.model}."), "Look.", call("lookup", order=f"o-{asked.turn}"))
    )
    providers.script("m", answers)
    providers.script("n", answers)
    journal = Journal(loop_of(f"{first}:m", fallback=(f"{second}:n",)))
    for model in (f"{first}:m", f"{second}:n", f"{first}:m", f"{second}:n"):
        journal.ask(model)
        journal.settle(worked)
    sent = providers.requests[-1].body
    assert "Thought of m." not in sent
    assert all(seen.status == 200 for seen in providers.requests)
    assert ("Thought of n." in sent) == (second != "openai-chat")


@pytest.mark.parametrize("model", PROTOCOLS)
def test_what_is_left_out_leaves_a_conversation_that_is_taken(providers: Providers, model: str) -> None:
    providers.script("m", lambda asked: turn(think("Hm."), call("lookup", order="o" * 500)))
    journal = Journal(loop_of(f"{model}:m", compact_at=None))
    for _ in range(6):
        body = journal.ask()
        journal.settle(worked)
    kept = [made.seq for made in journal.state.decisions][-2]
    told = {"before": kept, "level": "turns", "left_out": 4, "answered": journal.state.decisions[-1].seq}
    journal.add("PLAN", {"seen": journal.state.seq, "compaction": told})
    journal.ask()
    assert body["moves"] and providers.requests[-1].status == 200
    assert len(messages_of(journal.agent.content, journal.state)) < 12


def test_many_marks_of_the_cache_are_four_at_most(providers: Providers) -> None:
    providers.script("m", ["Done."])
    settings: Any = {
        "anthropic_cache_instructions": True, "anthropic_cache_tool_definitions": True,
        "anthropic_cache_messages": True,
    }  # fmt: skip
    journal = Journal(loop_of("anthropic:m", settings=settings, context=lambda view: "now"))
    journal.ask()
    assert json.loads(providers.requests[0].body)["model"] == "m"
    assert asking.prepare(journal.agent.content, journal.state, "anthropic:m").size
