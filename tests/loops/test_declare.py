"""What an author says of a loop: what is not allowed is said at once, what is said is in the release."""

import subprocess
import sys
from typing import Any

import pytest
from pydantic import BaseModel

from runs.loops.declared import is_wrapped
from runs.sdk import Agent, Secret
from runs.sdk.models import ModelLoop
from tests.loops.journals import lookup

HAIKU = "anthropic:claude-haiku-4-5-20251001"


class Verdict(BaseModel):
    reason: str
    cents: int


class Account(BaseModel):
    name: str
    password: Secret[str]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"model": "claude-haiku-4-5"}, "needs its provider in front"),
        ({"model": 5}, "named as 'provider:snapshot'"),
        ({"fallback": "openai:gpt-5.2"}, "fallback= is a list"),
        ({"fallback": (HAIKU,)}, "names a model twice"),
        ({"fallback": ("gpt",)}, "needs its provider in front"),
        ({"prompt": None}, "prompt= is a text"),
        ({"context": "now"}, "context= is a function"),
        ({"settings": {"openai_previous_response_id": "auto"}}, "kept in the journal, not at the provider"),
        ({"settings": {"openai_conversation_id": "c"}}, "kept in the journal, not at the provider"),
        ({"settings": {"openai_background": True}}, "openai_background"),
        ({"settings": {"openai_store": True}}, "openai_store"),
        ({"settings": {"max_retries": 2}}, "attempts= says"),
        ({"settings": {"timeout": 2}}, "timeout= says"),
        ({"settings": {"extra_body": {"previous_response_id": "r"}}}, "may not have previous_response_id"),
        ({"settings": {"extra_body": {"background": True}}}, "may not have background"),
        ({"settings": {"extra_headers": {"Authorization": "Bearer x"}}}, "never part of a release"),
        ({"settings": {"stop": {1, 2}}}, "what JSON knows"),
        ({"native": {"web_search": "write"}}, "only one that reads is allowed"),
        ({"native": ["web_search"]}, "native= is a dict"),
        ({"native": {"memory": "read"}}, "native= knows web_search"),
        ({"api_key": "sk-123"}, r"as '\$NAME'"),
        ({"api_key": {"anthropic": "sk-123"}}, r"as '\$NAME'"),
        ({"api_key": "$KEY", "fallback": ("openai:gpt-5.2",)}, "give keys by provider"),
        ({"base_url": 5}, "base_url= is a text"),
        ({"base_url": "https://olga:hunter2@gateway.example/v1"}, "base_url= has a password in it"),
        ({"base_url": "localhost:8080"}, "begins with http"),
        ({"base_url": {"antropic": "$GATEWAY"}}, "for 'antropic', which is not asked, and not for anthropic:"),
        ({"settings": {"extra_body": {"instructions": "Be evil."}}}, "may not have instructions"),
        ({"settings": {"extra_body": {"n": 5}}}, "may not have n:"),
        ({"timeout": 0}, "timeout= is a number"),
        ({"retries": -1}, "retries= is a whole number"),
        ({"attempts": 0}, "attempts= is a whole number"),
        ({"compact_at": 10}, "compact_at= is a number"),
        ({"stream": "yes"}, "stream= is True or False"),
        ({"output": lambda: 1}, "output= takes a type"),
        ({"output": Secret[str]}, "output= has a Secret in it"),
        ({"output": list[Account]}, "output= has a Secret in it"),
    ],
)
def test_what_is_not_allowed_is_said_at_once(given: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        ModelLoop(**{"model": HAIKU} | given)


def test_a_release_says_all_of_it() -> None:
    loop = ModelLoop(
        HAIKU, prompt="Refund.", output=Verdict, settings={"max_tokens": 2048}, fallback=("openai:gpt-5.2",),
        context=lambda run: "now", native={"web_search": "read"}, base_url="$GATEWAY", api_key={"anthropic": "$K"},
    )  # fmt: skip
    assert loop.content == {
        "name": HAIKU, "timeout": 120.0, "stream": True, "prompt": "Refund.", "settings": {"max_tokens": 2048},
        "output": Verdict.model_json_schema(), "fallback": ["openai:gpt-5.2"], "native": {"web_search": "read"},
        "base_url": "$GATEWAY", "api_key": {"anthropic": "$K"}, "context": True, "retries": 3, "attempts": 10,
        "compact_at": 150_000,
    }  # fmt: skip


@pytest.mark.parametrize(
    "other",
    [
        {"prompt": "Other."}, {"settings": {"max_tokens": 5}}, {"output": int}, {"timeout": 5.0}, {"stream": False},
        {"fallback": ("openai:gpt-5.2",)}, {"native": {"web_search": "read"}}, {"compact_at": None}, {"retries": 0},
        {"base_url": "$X"}, {"api_key": "$X"}, {"context": lambda run: "x"}, {"model": "openai:gpt-5.2"},
    ],
)  # fmt: skip
def test_another_content_is_another_release(other: dict[str, Any]) -> None:
    def release(**given: Any) -> str:
        return Agent(
            "desk", "1", [lookup], decide=ModelLoop(**{"model": HAIKU, "prompt": "Refund."} | given)
        ).release_id

    assert release() == release()
    assert release(**other) != release()


def test_results_are_validated_and_given_in_json_s_own_types() -> None:
    assert ModelLoop(HAIKU).validate_output("Done.") == "Done."
    typed = ModelLoop(HAIKU, output=Verdict)
    assert typed.validate_output({"reason": "r", "cents": "5"}) == {"reason": "r", "cents": 5}
    with pytest.raises(ValueError, match="cents"):
        typed.validate_output({"reason": "r"})
    with pytest.raises(ValueError, match="text"):
        ModelLoop(HAIKU).validate_output(5)


def test_a_call_s_arguments_are_always_an_object() -> None:
    for output, wrapped in ((Verdict, False), (dict[str, int], False), (int, True), (list[Verdict], True)):
        schema = ModelLoop(HAIKU, output=output).output_schema
        assert schema is not None
        assert is_wrapped(schema) is wrapped


@pytest.mark.parametrize(
    "imported",
    [
        "import runs.sdk, runs.sdk.models",
        "import django; django.setup(); import config.urls, config.celery, config.api, recovery",
        "import django; django.setup(); import runs.engine.worker, runs.engine.loop, runs.loops.policy",
    ],
)
def test_no_provider_s_client_is_loaded_before_one_is_asked(imported: str) -> None:
    heavy = "pydantic_ai", "openai", "anthropic", "genai_prices", "httpx2"
    code = f"{imported}\nimport sys\nprint([name for name in {heavy} if name in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120)
    assert run.stdout.strip() == "[]", run.stderr
