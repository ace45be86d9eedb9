"""Asking: the answer is whole or it is none, and each way in which a request goes wrong has its name."""

import multiprocessing
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from demo.providers.turns import call, say, think, turn
from runs.loops import asking
from runs.loops import providers as clients
from runs.loops.errors import ModelFailed
from tests.loops.journals import PROTOCOLS, Journal, agent_of, loop_of
from tests.rig.providers import Providers

SOON = 30.0
FAULTS = {
    "rate_limit": "rate_limited", "rate_limit_date": "rate_limited", "server_error": "server_error",
    "unavailable": "unavailable", "overloaded": "overloaded", "quota": "quota", "authentication": "authentication",
    "not_found": "not_found", "context_length": "context_too_long", "bad_request": "rejected",
    "cut_before": "connection_lost", "cut": "connection_lost", "garbage": "garbage",
}  # fmt: skip
IN_STREAMS = {"early_end": "cut_stream", "error_event": "overloaded"}


@pytest.fixture(autouse=True)
def keys(providers: Providers, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in providers.environment.items():
        monkeypatch.setenv(name, value)
    providers.script("m", [turn(think("Hm, hm."), "One two three four five six."), "Done."])


def failed(providers: Providers, model: str, kind: str, stream: bool, **details: Any) -> ModelFailed:
    providers.fault(kind, model="m", **details)
    journal = Journal(loop_of(f"{model}:m", stream=stream))
    prepared = asking.prepare(journal.agent.content, journal.state, f"{model}:m")
    with pytest.raises(ModelFailed) as caught:
        asking.ask(prepared, time.monotonic() + SOON)
    return caught.value


@pytest.mark.parametrize("model", PROTOCOLS)
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("kind", FAULTS)
def test_a_failure_has_its_name(providers: Providers, model: str, stream: bool, kind: str) -> None:
    error = failed(providers, model, kind, stream)
    assert error.code == FAULTS[kind]
    assert error.says
    assert len(providers.requests) == 1, "nobody asks again behind the journal's back"


@pytest.mark.parametrize("model", PROTOCOLS)
@pytest.mark.parametrize("kind", IN_STREAMS)
def test_a_stream_that_breaks_off_is_no_answer(providers: Providers, model: str, kind: str) -> None:
    assert failed(providers, model, kind, True).code in (IN_STREAMS[kind], "server_error")


@pytest.mark.parametrize("model", PROTOCOLS)
def test_how_long_to_wait_and_the_request_id_are_told(providers: Providers, model: str) -> None:
    error = failed(providers, model, "rate_limit", True, retry_after=7)
    assert error.retry_after == 7
    assert error.status == 429
    assert error.request_id == providers.requests[-1].request_id


def test_nobody_there_is_a_lost_connection(providers: Providers) -> None:
    journal = Journal(loop_of())
    prepared = asking.prepare(journal.agent.content, journal.state, "anthropic:m")
    with providers.away(), pytest.raises(ModelFailed) as caught:
        asking.ask(prepared, time.monotonic() + SOON)
    assert caught.value.code == "connection_lost"


def test_an_answer_that_does_not_come_in_time_is_given_up(providers: Providers) -> None:
    providers.fault("hold", model="m", after=0)
    journal = Journal(loop_of())
    prepared = asking.prepare(journal.agent.content, journal.state, "anthropic:m")
    began = time.monotonic()
    with pytest.raises(ModelFailed) as caught:
        asking.ask(prepared, began + 0.3)
    assert caught.value.code == "timeout"
    assert time.monotonic() - began < 10


def test_the_whole_request_has_a_timeout_of_the_loop(providers: Providers) -> None:
    providers.fault("hold", model="m", after=2)
    journal = Journal(loop_of(timeout=0.5))
    prepared = asking.prepare(journal.agent.content, journal.state, "anthropic:m")
    with pytest.raises(ModelFailed) as caught:
        asking.ask(prepared, time.monotonic() + SOON)
    assert caught.value.code == "timeout"


def test_an_answer_that_nobody_wants_any_more_is_given_up(providers: Providers) -> None:
    class Cancelled:
        asked = False

        def __bool__(self) -> bool:
            return self.asked

    providers.fault("hold", model="m", after=0)
    journal, cancelled = Journal(loop_of()), Cancelled()
    prepared = asking.prepare(journal.agent.content, journal.state, "anthropic:m")
    threading.Timer(0.2, lambda: setattr(cancelled, "asked", True)).start()
    with pytest.raises(ModelFailed, match="cancelled"):
        asking.ask(prepared, time.monotonic() + SOON, cancelled=cancelled)


@pytest.mark.parametrize("model", PROTOCOLS)
def test_text_is_told_while_it_arrives(providers: Providers, model: str) -> None:
    providers.script("slow", [turn("One two three four five six.", pace=0.3)])
    heard: list[str] = []
    journal = Journal(loop_of(f"{model}:slow"))
    body = journal.ask(watch=lambda text, thinking: heard.append(text))
    whole = body["moves"][0]["finish"]
    assert whole == "One two three four five six."
    assert heard == sorted(heard, key=len)
    assert all(whole.startswith(text) for text in heard)
    assert heard, "something was told before the end"


def test_another_request_than_the_journaled_one_is_not_sent(providers: Providers) -> None:
    journal = Journal(loop_of())
    prepared = asking.prepare(journal.agent.content, journal.state, "anthropic:m")
    object.__setattr__(prepared, "digest", "0" * 64)
    with pytest.raises(ModelFailed, match="not the one that was journaled"):
        asking.ask(prepared, time.monotonic() + SOON)
    assert providers.requests == []


@pytest.mark.parametrize("given", [{"base_url": "$M_NOWHERE"}, {"api_key": "$M_NO_KEY"}])
def test_a_variable_that_is_not_set_is_named(given: dict[str, str]) -> None:
    journal = Journal(loop_of(**given))
    with pytest.raises(ModelFailed, match=next(iter(given.values())).replace("$", r"\$")):
        asking.prepare(journal.agent.content, journal.state, "anthropic:m")


def test_a_provider_that_nobody_knows_is_not_found() -> None:
    journal = Journal(loop_of("nobody:m"))
    with pytest.raises(ModelFailed) as caught:
        asking.prepare(journal.agent.content, journal.state, "nobody:m")
    assert caught.value.code == "not_found"


def test_fifty_threads_ask_at_once(providers: Providers) -> None:
    providers.script("busy", lambda asked: turn(say("Hello there."), wait=0.1))
    journal = Journal(loop_of("anthropic:busy"))
    prepared = asking.prepare(journal.agent.content, journal.state, "anthropic:busy")

    def one(_: int) -> str:
        return str(asking.ask(prepared, time.monotonic() + 60).response.text)

    with ThreadPoolExecutor(50) as pool:
        assert set(pool.map(one, range(100))) == {"Hello there."}
    assert len(providers.answered("busy")) == 100


def test_a_model_object_is_asked_without_a_wire() -> None:
    from pydantic_ai import ModelResponse
    from pydantic_ai.messages import TextPart
    from pydantic_ai.models.function import FunctionModel

    def say_it(messages: Any, info: Any) -> ModelResponse:
        return ModelResponse(parts=[TextPart(f"{len(messages)} heard, {len(info.function_tools)} tools")])

    loop = loop_of(FunctionModel(say_it, model_name="mine"))  # type: ignore[arg-type]
    journal = Journal(loop)
    assert loop.content["name"] == "function:mine"
    body = journal.ask()
    assert body["moves"] == [{"finish": "1 heard, 4 tools"}]
    assert body["cost"] is None
    asked = journal.entries[-2].body
    assert len(asked["digest"]) == 64
    assert asked["client"].startswith("pydantic-ai-slim ")


def test_settings_are_forced(providers: Providers) -> None:
    journal = Journal(loop_of("openai-responses:m"))
    journal.ask()
    sent = providers.requests[-1].body
    assert '"store":false' in sent.replace(" ", "")
    assert str(journal.state.root) in sent, "the affinity token"
    told = clients.settings_of(journal.agent.content["model"], "openai-responses:m", "token")
    assert told["max_retries"] == 0
    assert told["request_timeout"] == 120.0


def test_tools_that_the_provider_runs_are_journaled_and_not_called(providers: Providers) -> None:
    from demo.providers.turns import Search

    providers.script("web", [turn(Search("holdfast", (("https://a.example", "A"),)), "Found it."), "Again."])
    for model in ("anthropic", "openai-responses"):
        journal = Journal(loop_of(f"{model}:web", native={"web_search": "read"}))
        body = journal.ask()
        assert [next(iter(move)) for move in body["moves"]] == ["finish"]
        kinds = {part["part_kind"] for part in body["response"]["parts"]}
        assert "builtin-tool-call" in kinds or "native-tool-call" in kinds, kinds
        journal.signal("message", "Once more")
        journal.ask()


def test_calls_of_one_answer_are_told_in_their_order(providers: Providers) -> None:
    providers.script("three", [turn(*(call("lookup", order=f"o-{n}") for n in range(3))), "Done."])
    journal = Journal(loop_of("anthropic:three"), agent=agent_of(loop_of("anthropic:three")))
    journal.ask()
    journal.settle(lambda step: {"outcome": "succeeded", "result": f"result {step}"})
    journal.ask()
    sent = providers.requests[-1].body
    assert [sent.index(f"result {step}") for step in (1, 2, 3)] == sorted(sent.index(f"result {s}") for s in (1, 2, 3))


def test_a_child_of_a_fork_asks_with_a_loop_and_clients_of_its_own(providers: Providers) -> None:
    journal = Journal(loop_of())
    journal.ask()
    child = multiprocessing.get_context("fork").Process(target=Journal(loop_of()).ask)
    child.start()
    child.join(60)
    assert child.exitcode == 0
    assert len(providers.answered("m")) == 2


@pytest.mark.parametrize(
    ("address", "code", "says"),
    [
        ("$A_GATEWAY", "connection_lost", "127.0.0.1:9 cannot be reached: Connection refused"),
        ("https://no-such-host.invalid", "connection_lost", "no-such-host.invalid:443 cannot be reached: "),
        ("$NO_SCHEME", "rejected", "base_url is no address: "),
        ("http://[::1", "rejected", "base_url is no address: "),
    ],
)
@pytest.mark.parametrize("model", PROTOCOLS)
def test_a_wrong_address_is_told_with_what_is_wrong(
    monkeypatch: pytest.MonkeyPatch, model: str, address: str, code: str, says: str
) -> None:
    monkeypatch.setenv("A_GATEWAY", "http://olga:hunter2@127.0.0.1:9/v1")
    monkeypatch.setenv("NO_SCHEME", "localhost:9")
    journal = Journal(loop_of(f"{model}:m", base_url=address))
    with pytest.raises(ModelFailed) as caught:
        asking.ask(asking.prepare(journal.agent.content, journal.state, f"{model}:m"), time.monotonic() + SOON)
    assert (caught.value.code, caught.value.says[: len(says)]) == (code, says)
    assert "hunter2" not in caught.value.says


@pytest.mark.parametrize("model", PROTOCOLS)
@pytest.mark.parametrize("stream", [False, True])
def test_what_the_provider_said_is_told_and_nothing_of_python(providers: Providers, model: str, stream: bool) -> None:
    says = failed(providers, model, "rate_limit", stream).says
    assert says in (
        "429: This request would exceed your rate limit.",
        "429: Rate limit reached for m. Please try again later.",
    )


def test_an_unknown_provider_is_told_once() -> None:
    journal = Journal(loop_of("nonsense:abc"))
    with pytest.raises(ModelFailed) as caught:
        asking.prepare(journal.agent.content, journal.state, "nonsense:abc")
    assert caught.value.says == "Unknown provider: nonsense"


@pytest.mark.parametrize("model", PROTOCOLS)
def test_a_password_in_the_address_is_not_kept(
    providers: Providers, monkeypatch: pytest.MonkeyPatch, model: str
) -> None:
    url = providers.anthropic_url if model == "anthropic" else providers.openai_url
    monkeypatch.setenv("A_GATEWAY", url.replace("://", "://olga:hunter2@"))
    journal = Journal(loop_of(f"{model}:m", base_url="$A_GATEWAY"))
    for _ in range(2):
        journal.ask()
    assert "hunter2" not in journal.dumped()
    assert "127.0.0.1" in journal.dumped()


@pytest.mark.parametrize("model", PROTOCOLS)
def test_a_key_that_is_not_set_is_named(monkeypatch: pytest.MonkeyPatch, model: str) -> None:
    variable = "ANTHROPIC_API_KEY" if model == "anthropic" else "OPENAI_API_KEY"
    monkeypatch.delenv(variable)
    monkeypatch.delenv("OPENAI_BASE_URL")  # a server of one's own may do without a key
    journal = Journal(loop_of(f"{model}:m"))
    with pytest.raises(ModelFailed) as caught:
        asking.prepare(journal.agent.content, journal.state, f"{model}:m").asked  # noqa: B018
    assert (caught.value.code, caught.value.says) == (
        "authentication",
        f"{variable} is not set in the worker's environment",
    )
