"""Each thing that goes wrong at a provider, as the real client libraries tell of it."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from pydantic_ai import ModelResponse
from pydantic_ai.exceptions import (
    ModelAPIError,
    ModelAuthenticationError,
    ModelConnectionError,
    ModelContextWindowExceededError,
    ModelNotFoundError,
    ModelOverloadedError,
    ModelQuotaExceededError,
    ModelRateLimitError,
    ModelRequestRejectedError,
    ModelRequestTimeout,
    ModelServerError,
    ModelUnavailableError,
    UnexpectedModelBehavior,
)

from demo.providers.faults import REFUSALS, BadFault, Fault
from demo.providers.spoiled import NO_TOOL
from demo.providers.turns import call, turn
from tests.demo.model_clients import NAME, PROTOCOLS, ask, talk
from tests.rig.ledger import wait_until
from tests.rig.providers import Providers, running_providers

LOOK = turn("One moment, please.", call("lookup", id="o-1"), call("lookup", id="o-2"))
EVERY = [(protocol, stream) for protocol in PROTOCOLS for stream in (False, True)]
every_protocol = pytest.mark.parametrize(("protocol", "stream"), EVERY, ids=lambda value: str(value))
streamed = pytest.mark.parametrize("protocol", PROTOCOLS)
REFUSED = {
    "rate_limit": ModelRateLimitError,
    "rate_limit_date": ModelRateLimitError,
    "server_error": ModelServerError,
    "unavailable": ModelUnavailableError,
    "overloaded": ModelOverloadedError,
    "quota": ModelQuotaExceededError,
    "authentication": ModelAuthenticationError,
    "not_found": ModelNotFoundError,
    "context_length": ModelContextWindowExceededError,
    "bad_request": ModelRequestRejectedError,
}


@pytest.fixture(scope="module")
def server() -> Iterator[Providers]:
    with running_providers() as running:
        yield running


@pytest.fixture
def providers(server: Providers) -> Providers:
    server.forget()
    server.script(NAME, [LOOK, "Done."])
    return server


@every_protocol
@pytest.mark.parametrize("kind", REFUSALS)
def test_a_refusal_is_told_by_its_class(providers: Providers, kind: str, protocol: str, stream: bool) -> None:
    providers.fault(kind)
    with pytest.raises(REFUSED[kind]) as failed:
        ask(providers, protocol, stream=stream)
    assert type(failed.value).__name__ == REFUSED[kind].__name__  # and no narrower one
    (seen,) = providers.requests
    assert (seen.fault, seen.answered, seen.status, seen.usage) == (kind, False, failed.value.status_code, None)
    assert failed.value.headers is not None
    assert seen.request_id in failed.value.headers.values()
    assert ask(providers, protocol, stream=stream).tool_calls  # once, and no more


@every_protocol
@pytest.mark.parametrize("kind", ["rate_limit", "rate_limit_date", "unavailable", "overloaded"])
def test_a_refusal_says_when_to_come_back(providers: Providers, kind: str, protocol: str, stream: bool) -> None:
    providers.fault(kind, retry_after=90)
    with pytest.raises(ModelAPIError) as failed:
        ask(providers, protocol, stream=stream)
    assert failed.value.retry_after == pytest.approx(90, abs=0 if kind != "rate_limit_date" else 30)


@every_protocol
@pytest.mark.parametrize("kind", ["cut_before", "cut"])
def test_a_cut_connection_is_lost(providers: Providers, kind: str, protocol: str, stream: bool) -> None:
    providers.fault(kind)
    with pytest.raises(ModelConnectionError):
        ask(providers, protocol, stream=stream)
    (seen,) = providers.requests
    assert (seen.answered, seen.status) == (False, 200 if kind == "cut" else None)


@streamed
def test_a_stream_that_ends_too_soon_looks_whole_but_says_no_reason(providers: Providers, protocol: str) -> None:
    providers.fault("early_end")
    response = ask(providers, protocol, stream=True)
    assert "finish_reason" not in (response.provider_details or {})
    assert not providers.requests[0].answered


@streamed
def test_an_error_inside_a_stream_is_told(providers: Providers, protocol: str) -> None:
    providers.fault("error_event")
    with pytest.raises(ModelOverloadedError) as failed:
        ask(providers, protocol, stream=True)
    assert failed.value.in_stream
    assert [(seen.answered, seen.status) for seen in providers.requests] == [(False, 200)]


@every_protocol
def test_garbage_is_no_answer(providers: Providers, protocol: str, stream: bool) -> None:
    providers.fault("garbage")
    with pytest.raises(UnexpectedModelBehavior if stream else ModelAPIError) as failed:
        ask(providers, protocol, stream=stream)
    assert isinstance(failed.value, ModelAPIError) is not stream


@pytest.mark.parametrize(("kind", "stream"), [("delay", False), ("delay", True), ("slow", True)])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_late_answer_meets_the_timeout(providers: Providers, kind: str, protocol: str, stream: bool) -> None:
    providers.fault(kind, seconds=30)
    with pytest.raises(ModelRequestTimeout):
        ask(providers, protocol, stream=stream, request_timeout=0.15)
    wait_until(lambda: providers.requests[0].gone, "the server sees that the caller hung up")
    assert not providers.requests[0].answered


@every_protocol
def test_a_held_answer_waits_until_it_is_released(providers: Providers, protocol: str, stream: bool) -> None:
    providers.fault("hold", after=2)
    with ThreadPoolExecutor() as pool:
        answer = pool.submit(ask, providers, protocol, stream=stream)
        wait_until(lambda: providers.requests, "it is asked")
        if stream:
            wait_until(lambda: providers.requests[0].pieces == 2, "two pieces are sent")
        assert not answer.done()
        assert not providers.requests[0].answered
        providers.release()
        assert answer.result().text == LOOK.blocks[0].text  # type: ignore[union-attr]


@every_protocol
@pytest.mark.parametrize(("kind", "parts"), [("empty", 0), ("content_filter", 0), ("refusal", None)])
def test_an_answer_without_an_answer_is_no_exception(
    providers: Providers, kind: str, parts: int | None, protocol: str, stream: bool
) -> None:
    providers.fault(kind)
    response = ask(providers, protocol, stream=stream)
    assert response.finish_reason == ("stop" if kind == "empty" else "content_filter")
    assert not response.tool_calls
    assert parts is None or len(response.parts) == parts
    if kind == "refusal" and protocol != "messages":
        assert (response.provider_details or {})["refusal"]


@every_protocol
def test_an_answer_that_ran_out_of_tokens_ends_in_the_middle(providers: Providers, protocol: str, stream: bool) -> None:
    providers.fault("length")
    response = ask(providers, protocol, stream=stream)
    assert response.finish_reason == "length"
    assert response.tool_calls[-1].args == '{"id":'


@every_protocol
def test_a_call_comes_out_wrong(providers: Providers, protocol: str, stream: bool) -> None:
    providers.fault("bad_arguments")
    assert ask(providers, protocol, stream=stream).tool_calls[0].args == '{"id": "o-1"'
    providers.fault("unknown_tool")
    assert ask(providers, protocol, stream=stream).tool_calls[0].tool_name == NO_TOOL


@every_protocol
@pytest.mark.parametrize("kind", ["no_call_id", "empty_call_id"])
def test_a_call_has_no_id(providers: Providers, kind: str, protocol: str, stream: bool) -> None:
    providers.fault(kind)
    if (kind, protocol, stream) == ("no_call_id", "chat", False):
        with pytest.raises(UnexpectedModelBehavior):
            ask(providers, protocol, stream=stream)
        return
    made_up = ask(providers, protocol, stream=stream).tool_calls[0].tool_call_id
    if protocol == "chat" or stream:
        assert made_up.startswith("pyd_ai_")
    else:  # the libraries hand it on as it came
        assert made_up == {"no_call_id": None, "empty_call_id": ""}[kind]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_an_input_that_is_too_long_is_refused(providers: Providers, protocol: str) -> None:
    providers.script("short", ["Hello.", "Done."], context=300)
    assert ask(providers, protocol, name="short").text == "Hello."
    with pytest.raises(ModelContextWindowExceededError):
        talk(providers, protocol, "x" * 2000, name="short")


def test_faults_of_a_turn_strike_that_turn_anew_for_each_scenario(providers: Providers) -> None:
    look = turn(call("lookup", id="o-1"), faults=(Fault("server_error"), Fault("unavailable", times=2)))
    for _ in range(2):
        providers.script(NAME, [look, "Done."])
        for failure in (ModelServerError, ModelUnavailableError, ModelUnavailableError):
            with pytest.raises(failure):
                ask(providers, "chat")
        *_, last = talk(providers, "chat", "there")
        assert isinstance(last, ModelResponse)
        assert last.text == "Done."


def test_an_ordered_fault_may_be_for_a_turn_or_a_model(providers: Providers) -> None:
    providers.script("other", ["Hello."])
    providers.fault("server_error", model="other", times=None)
    providers.fault("unavailable", model=NAME, turn=1)
    with pytest.raises(ModelUnavailableError):
        talk(providers, "messages", "there")
    for _ in range(3):
        with pytest.raises(ModelServerError):
            ask(providers, "messages", name="other")
    assert [seen.turn for seen in providers.asked(NAME)] == [0, 1]


def test_a_share_of_the_requests_may_be_struck(providers: Providers) -> None:
    providers.fault("server_error", share=0.25, times=None)
    failed = []
    for _ in range(8):
        try:
            ask(providers, "chat")
            failed.append(False)
        except ModelServerError:
            failed.append(True)
    assert failed == [False, False, False, True] * 2


def test_nobody_listens_for_a_while(providers: Providers) -> None:
    with providers.away(), pytest.raises(ModelConnectionError):
        ask(providers, "messages")
    assert ask(providers, "messages").tool_calls


def test_a_fault_that_does_not_fit_says_so(providers: Providers) -> None:
    providers.fault("early_end")
    with pytest.raises(ModelRequestRejectedError, match="is for a stream"):
        ask(providers, "chat")
    providers.script(NAME, ["No call."])
    providers.fault("bad_arguments")
    with pytest.raises(ModelRequestRejectedError, match="this turn has none"):
        ask(providers, "chat")


@pytest.mark.parametrize(
    "wrong",
    [{"kind": "rain"}, {"kind": "cut", "times": 0}, {"kind": "cut", "share": 2}, {"kind": "cut", "colour": 1}, []],
)
def test_a_fault_that_nobody_knows_is_refused(wrong: object) -> None:
    with pytest.raises(BadFault):
        Fault.parse(wrong)
