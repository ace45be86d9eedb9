"""The real client libraries talk to scripted providers as to real ones."""

import asyncio
import hashlib
import json
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from pydantic_ai import ModelResponse
from pydantic_ai.messages import NativeToolCallPart, NativeToolReturnPart, TextPart, ThinkingPart
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.native_tools import WebSearchTool

from demo.providers.asked import Asked
from demo.providers.turns import Call, Search, Turnlike, Usage, call, say, think, turn
from tests.demo.model_clients import NAME, PROTOCOLS, ask, ask_with, model, talk
from tests.rig.providers import Providers, running_providers

EVERY = [(protocol, stream) for protocol in PROTOCOLS for stream in (False, True)]
every_protocol = pytest.mark.parametrize(("protocol", "stream"), EVERY, ids=lambda value: str(value))
LOOK = turn(
    think("They greet me.\nLet me look."),
    "One moment,  please. ",
    call("lookup", id="o-1", note="später"),
    call("refund"),
)


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
def test_a_turn_arrives_as_scripted(providers: Providers, protocol: str, stream: bool) -> None:
    response = ask(providers, protocol, stream=stream)
    assert response.text == "One moment,  please. "
    assert [(each.tool_name, each.args_as_dict()) for each in response.tool_calls] == [
        ("lookup", {"id": "o-1", "note": "später"}),
        ("refund", {}),
    ]
    assert response.model_name == NAME
    assert (response.state, (response.provider_details or {})["finish_reason"]) == (
        "complete",
        {"chat": "tool_calls", "responses": "completed", "messages": "tool_use"}[protocol],
    )
    thoughts = [part.content for part in response.parts if isinstance(part, ThinkingPart)]
    assert thoughts == ([] if protocol == "chat" else ["They greet me.\nLet me look."])


@every_protocol
def test_results_lead_to_the_next_turn(providers: Providers, protocol: str, stream: bool) -> None:
    *_, last = talk(providers, protocol, {"state": "shipped"}, stream=stream)
    assert isinstance(last, ModelResponse)
    assert (last.text, last.finish_reason) == ("Done.", "stop")
    assert [(seen.turn, seen.answered, seen.status) for seen in providers.requests] == [(0, True, 200), (1, True, 200)]


@every_protocol
def test_a_repeated_request_is_answered_alike(providers: Providers, protocol: str, stream: bool) -> None:
    first, second = ask(providers, protocol, stream=stream), ask(providers, protocol, stream=stream)
    assert first.parts == second.parts
    assert first.provider_response_id == second.provider_response_id
    one, other = providers.answered(NAME)
    assert (one.digest, one.usage) == (other.digest, other.usage)
    assert one.request_id != other.request_id


@every_protocol
def test_a_function_decides_from_what_it_sees(providers: Providers, protocol: str, stream: bool) -> None:
    asked_for: list[Asked] = []

    def decide(asked: Asked) -> Turnlike:
        asked_for.append(asked)
        match asked.results_of("lookup"):
            case []:
                return [say(f"You said {asked.said[0]}"), call("lookup", id="o-7")]
            case [*_, result]:
                return f"It is {result.value['state']}."

    providers.script(NAME, decide)
    *_, last = talk(providers, protocol, {"state": "lost"}, "Thank you.", stream=stream)
    assert isinstance(last, ModelResponse)
    assert last.text == "It is lost."
    assert asked_for[0].tools == ("lookup", "refund")
    assert asked_for[0].system == "Be good."
    assert [asked.turn for asked in asked_for] == [0, 1, 2]
    assert [(item.kind, item.text) for item in asked_for[2].items] == [
        ("user", "Hello."),
        ("assistant", "You said Hello."),
        ("call", '{"id": "o-7"}' if protocol == "messages" else asked_for[2].calls[0].text),
        ("result", '{"state":"lost"}'),
        ("assistant", "It is lost."),
        ("user", "Thank you."),
    ]
    assert [item.text for item in asked_for[2].latest] == ["Thank you."]


@every_protocol
def test_raw_arguments_are_sent_as_they_stand(providers: Providers, protocol: str, stream: bool) -> None:
    providers.script(NAME, [Call("lookup", '{"id": 1e2,'), "Sorry."])
    *_, last = talk(providers, protocol, "No JSON.", stream=stream)
    assert isinstance(last, ModelResponse)
    assert last.text == "Sorry."
    assert ask(providers, protocol, stream=stream).tool_calls[0].args == '{"id": 1e2,'


@every_protocol
def test_usage_is_counted_from_the_request(providers: Providers, protocol: str, stream: bool) -> None:
    settings: dict[str, Any] = {"anthropic_cache": True} if protocol == "messages" else {}
    messages = talk(providers, protocol, {"long": "x" * 2000}, stream=stream, **settings)
    first, second = [message.usage for message in messages if isinstance(message, ModelResponse)]
    for usage, seen in zip((first, second), providers.requests, strict=True):
        assert usage.input_tokens == -(-len(seen.body.encode()) // 4)
        assert seen.usage is not None
        assert usage.output_tokens == seen.usage.output > 0
    assert first.cache_read_tokens == 0
    assert 0 < second.cache_read_tokens < first.input_tokens or protocol != "messages"
    assert (first.cache_write_tokens > 0) is (protocol == "messages")


@every_protocol
def test_a_turn_may_give_its_own_usage_and_model(providers: Providers, protocol: str, stream: bool) -> None:
    usage = Usage(5000, 70, cache_read=4096, reasoning=20)
    providers.script(NAME, [turn("Hello.", usage=usage, model="a-model-2026-01-01")])
    response = ask(providers, protocol, stream=stream)
    assert response.model_name == "a-model-2026-01-01"
    got = response.usage
    assert (got.input_tokens, got.output_tokens, got.cache_read_tokens) == (5000, 70, 4096)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("protocol", ["responses", "messages"])
def test_a_search_runs_at_the_provider(providers: Providers, protocol: str, stream: bool) -> None:
    providers.script(NAME, [turn(Search("weather", (("https://a.example/", "A page"),)), "It rains.")])
    offered = ModelRequestParameters(native_tools=[WebSearchTool()])
    parts = ask(providers, protocol, stream=stream, offered=offered).parts
    assert [type(part) for part in parts] == [NativeToolCallPart, NativeToolReturnPart, TextPart]
    assert isinstance(parts[0], NativeToolCallPart)
    assert isinstance(parts[1], NativeToolReturnPart)
    assert (parts[0].tool_name, (parts[0].args_as_dict() or {})["query"]) == ("web_search", "weather")
    assert "https://a.example/" in json.dumps(parts[1].content)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_requests_are_kept_as_they_came_without_secrets(providers: Providers, protocol: str) -> None:
    ask(providers, protocol)
    (seen,) = providers.asked(NAME)
    assert hashlib.sha256(seen.body.encode()).hexdigest() == seen.digest
    assert json.loads(seen.body)["model"] == NAME
    assert seen.headers["content-type"] == "application/json"
    assert "a-secret" not in json.dumps(seen.as_json())
    assert (seen.dialect, seen.stream, seen.fault, seen.gone) == (protocol, False, None, False)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_turn_of_which_older_ones_were_left_out_is_known_by_its_calls(providers: Providers, protocol: str) -> None:
    providers.script(NAME, [LOOK, LOOK, LOOK, "Done."])
    hello, *_first, _results, third, results, _last = talk(providers, protocol, 1, 2, 3)
    assert ask(providers, protocol, [hello, third, results]).text == "Done."


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_hundred_at_once_are_answered(providers: Providers, protocol: str) -> None:
    providers.fault("delay", times=None, seconds=0.1)

    async def crowd() -> list[ModelResponse]:
        limits = httpx2.Limits(max_connections=100)
        async with httpx2.AsyncClient(limits=limits, timeout=30) as client:
            one = model(protocol, providers, client)
            return await asyncio.gather(*(ask_with(one, stream=number % 2 == 0) for number in range(100)))

    assert {response.text for response in asyncio.run(crowd())} == {"One moment,  please. "}
    assert len(providers.answered(NAME)) == 100
