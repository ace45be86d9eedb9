"""Which model is asked now, and why none is."""

from typing import Any

from journal.entries import Kind
from runs.loops.policy import Ask, next_request
from runs.model_turns import Later, LeaveOut, NeedsPerson
from tests.loops.journals import BEGAN, Journal, loop_of
from tests.loops.test_tell_conversation import response, said

FIRST, SECOND = "anthropic:claude-haiku-4-5", "openai:gpt-5.2"
LATER = BEGAN.timestamp() + 10_000


def next_of(journal: Journal, now: float | None = None, epoch: int = 1) -> Any:
    moment = journal.entries[-1].recorded_at.timestamp() if now is None else now
    return next_request(journal.loop, journal.state, moment, epoch)


def fail(journal: Journal, model: str, code: str = "server_error", says: str = "no", retry_after: float = 0.0) -> None:
    journal.attempt(model)
    journal.error(code, says, retry_after)


def two(**given: Any) -> Journal:
    return Journal(loop_of(FIRST, fallback=(SECOND,), **given))


def test_the_first_request_names_the_affinity() -> None:
    journal = two()
    assert next_of(journal) == Ask(FIRST, {"affinity": str(journal.state.root)})
    journal.attempt(FIRST, affinity="x")
    journal.error("server_error")
    assert next_of(journal, LATER) == Ask(SECOND, {})


def test_a_failure_goes_on_at_once_with_the_next_of_the_order() -> None:
    journal = two()
    fail(journal, FIRST)
    assert next_of(journal).model == SECOND


def test_a_round_that_failed_is_followed_by_a_backoff_that_grows() -> None:
    journal, waits = two(), []
    for _ in range(3):
        fail(journal, FIRST)
        fail(journal, SECOND)
        wait = next_of(journal)
        assert isinstance(wait, Later)
        waits.append(wait.at - journal.entries[-4].recorded_at.timestamp())
        assert next_of(journal, wait.at).model in (FIRST, SECOND)
    assert 1 <= waits[0] <= 2
    assert waits == sorted(waits)
    assert next_of(journal) == next_of(journal), "the same at each look"


def test_as_much_time_as_the_provider_asks_for_is_given_up_to_an_hour() -> None:
    journal = Journal(loop_of(FIRST))
    fail(journal, FIRST, "rate_limited", retry_after=60)
    assert next_of(journal).at == journal.entries[-1].body["due"]
    fail(journal, FIRST, "rate_limited", retry_after=10 * 86_400)
    assert next_of(journal).at == journal.entries[-2].recorded_at.timestamp() + 3_600


def test_a_model_that_refuses_for_good_is_passed_over() -> None:
    journal = two()
    fail(journal, FIRST, "quota")
    fail(journal, SECOND)
    assert next_of(journal, LATER).model == SECOND
    fail(journal, SECOND, "authentication", "the key is wrong")
    held = next_of(journal, LATER)
    assert isinstance(held, NeedsPerson)
    assert FIRST in held.reason
    assert "the key is wrong" in held.reason


def test_resuming_begins_to_count_anew() -> None:
    journal = two()
    fail(journal, FIRST, "quota")
    fail(journal, SECOND, "not_found")
    assert isinstance(next_of(journal), NeedsPerson)
    journal.add(Kind.CONTROL, {"verb": "hold", "reason": "x"}, actor="system")
    journal.add(Kind.CONTROL, {"verb": "resume", "reason": "paid"}, actor="user:olga")
    assert next_of(journal).model == FIRST


def test_retrying_asks_at_once() -> None:
    journal = Journal(loop_of(FIRST))
    fail(journal, FIRST, "rate_limited", retry_after=600)
    journal.add(Kind.CONTROL, {"verb": "retry", "reason": "now"}, actor="user:olga")
    assert isinstance(next_of(journal), Ask)


def test_too_many_requests_without_an_answer_wait_for_a_person() -> None:
    journal = two(attempts=4)
    for _ in range(2):
        fail(journal, FIRST, says="broken pipe")
        fail(journal, SECOND, says="overloaded")
    held = next_of(journal, LATER)
    assert held == NeedsPerson(f"no answer in 4 requests: {FIRST}: broken pipe; {SECOND}: overloaded")


def test_too_many_corrections_wait_for_a_person() -> None:
    journal = Journal(loop_of(FIRST, retries=1))
    reply = {"id": "a", "tool": "lookup", "outcome": "retried", "content": "order: missing", "cause": "arguments"}
    for _ in range(2):
        assert isinstance(next_of(journal), Ask)
        journal.say({"moves": [], "response": response("a"), "finish": "stop", "usage": {}, "replies": [reply]})
    held = next_of(journal)
    assert isinstance(held, NeedsPerson)
    assert "lookup: order: missing" in held.reason
    journal.add(Kind.CONTROL, {"verb": "resume", "reason": "again"}, actor="user:olga")
    assert isinstance(next_of(journal), Ask)


def test_a_refusal_goes_to_the_next_model_and_then_to_a_person() -> None:
    journal = two()
    refused = {"moves": [], "response": response(text="No."), "finish": "content_filter", "usage": {}}
    journal.say(refused | {"asked_model": FIRST})
    assert next_of(journal).model == SECOND
    journal.say(refused | {"asked_model": SECOND})
    held = next_of(journal)
    assert isinstance(held, NeedsPerson)
    assert "refused to answer" in held.reason


def test_a_request_whose_worker_was_lost_is_asked_again_and_noted() -> None:
    journal = two()
    lost = journal.attempt(FIRST, affinity="x", size=4_000)
    journal.epoch = 2
    asked = next_of(journal, epoch=2)
    assert asked.model == FIRST
    told = asked.extra["lost"]
    assert (told["seq"], told["input_tokens"], told["output_tokens"]) == (lost.seq, 1_000, 500)
    assert float(told["cost"]) > 0
    assert "lost" not in next_of(journal, epoch=1).extra


# -- compaction -------------------------------------------------------------------------------------------------------


def talked(loop: Any, turns: int, tokens: int = 0) -> Journal:
    journal = Journal(loop)
    for n in range(turns):
        journal.say(said(f"c{n}", usage={"input_tokens": tokens}))
        journal.settle(lambda step: {"outcome": "succeeded", "result": f"r{step} " * 200})
    return journal


def compact(journal: Journal) -> dict[str, Any]:
    found = next_of(journal)
    assert isinstance(found, LeaveOut), found
    journal.add(Kind.PLAN, {"seen": len(journal.entries), "compaction": found.body})
    return found.body


def test_above_its_limit_older_results_are_left_out_once() -> None:
    journal = talked(loop_of(compact_at=5_000), 6, tokens=6_000)
    body = compact(journal)
    assert (body["level"], body["left_out"]) == ("results", 2)
    assert body["before"] == journal.state.decisions[2].seq
    assert isinstance(next_of(journal), Ask), "it is asked before more is left out"


def test_below_its_limit_nothing_is_left_out() -> None:
    assert isinstance(next_of(talked(loop_of(compact_at=5_000), 6, tokens=4_000)), Ask)
    assert isinstance(next_of(talked(loop_of(compact_at=None), 6, tokens=10**9)), Ask)


def test_a_conversation_that_is_refused_as_too_long_is_shown_shorter_and_shorter_and_then_to_a_person() -> None:
    journal = talked(loop_of(FIRST), 8)
    levels = []
    for _ in range(10):
        journal.attempt(FIRST)
        journal.error("context_too_long", "200001 tokens")
        if isinstance(found := next_of(journal), NeedsPerson):
            break
        levels.append(compact(journal)["level"])
        assert isinstance(next_of(journal), Ask)
    assert levels == ["results", "turns", "turns"]
    assert isinstance(found, NeedsPerson)
    assert "200001 tokens" in found.reason


def leave_out(journal: Journal, number: int, level: str) -> None:
    body = {"before": journal.state.decisions[number].seq, "level": level, "left_out": number}
    journal.add(Kind.PLAN, {"seen": 1, "compaction": body})


def test_what_is_left_out_is_told_in_its_place() -> None:
    from runs.loops.conversation import turns_of

    journal = talked(loop_of(FIRST), 6)
    journal.signal("message", "Not twice!")
    before = [str(turn.content) for turn in turns_of(journal.state)]
    journal.add(
        Kind.PLAN,
        {"seen": 1, "compaction": {"before": journal.state.decisions[2].seq, "level": "results", "left_out": 2}},
    )
    results = [turn.content for turn in turns_of(journal.state) if turn.by == "tool"]
    assert [text.startswith("[left out") for text in results] == [True, True, False, False, False, False]
    journal.add(
        Kind.PLAN,
        {"seen": 1, "compaction": {"before": journal.state.decisions[4].seq, "level": "turns", "left_out": 4}},
    )
    turns = turns_of(journal.state)
    assert [turn.by for turn in turns] == ["person", "person", "model", "tool", "model", "tool", "person"]
    assert '- lookup {"order": "c0"}: succeeded' in turns[1].content
    assert turns[-1].content == "Not twice!"
    assert len("".join(str(turn.content) for turn in turns)) < len("".join(before))
