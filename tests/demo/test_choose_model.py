"""HOLDFAST_DEMO_MODEL: the support agent with a real model, or plain words why not."""

import subprocess
import sys

import pytest

from demo import model
from demo.agents.support import support, support_agent
from demo.management.commands.demo import promote_support
from demo.support_model import quickly
from runs import testing
from runs.registry import announce_one
from runs.stages import promote_release
from runs.staging import current_of
from tests.demo.test_support import LARGE, SMALL, TOOLS, ticket
from tests.rig.crew import Crew
from tests.rig.ledger import ROOT
from tests.rig.providers import Providers
from tests.rig.providers import providers as providers

HAIKU = "claude-haiku-4-5-20251001"
REAL = f"anthropic:{HAIKU}"


def test_without_the_variable_it_is_the_scripted_one() -> None:
    assert model.real_model({}) is None
    assert model.real_model({"HOLDFAST_DEMO_MODEL": " "}) is None


@pytest.mark.parametrize(
    ("named", "key"),
    [
        (REAL, "ANTHROPIC_API_KEY"),
        ("openai:gpt-5.2-2026-01-15", "OPENAI_API_KEY"),
        (" openai-chat:x/y ", "OPENAI_API_KEY"),
    ],
)
def test_a_model_is_taken_with_its_providers_key(named: str, key: str) -> None:
    assert model.real_model({"HOLDFAST_DEMO_MODEL": named, key: "a key"}) == named.strip()
    with pytest.raises(model.ModelUnusable, match=f"needs the provider's key in {key}, which is not set"):
        model.real_model({"HOLDFAST_DEMO_MODEL": named})


@pytest.mark.parametrize("named", ["claude-haiku-4-5", "anthropic:", "anthropic:two words", "antropic:claude", ":x"])
def test_what_names_no_model_is_refused_in_a_sentence(named: str) -> None:
    with pytest.raises(model.ModelUnusable, match=r"HOLDFAST_DEMO_MODEL=.* provider"):
        model.real_model({"HOLDFAST_DEMO_MODEL": named, "ANTHROPIC_API_KEY": "a key"})


def test_each_model_has_a_version_of_its_own_and_the_users_variables_are_left_alone() -> None:
    real = support_agent(REAL)
    assert (support.version, real.version) == ("1", f"1-anthropic-{HAIKU}")
    assert real.content["model"].keys().isdisjoint({"base_url", "api_key"})
    assert support.content["model"]["base_url"] == "$HOLDFAST_DEMO_MODEL_URL"
    assert real.content["tools"] == support.content["tools"]


def listed(**variables: str) -> str:
    """The versions of support that a process with this environment serves."""
    said = (
        "import demo.agents as d; print([a.version for a in vars(d).values() if getattr(a, 'name', '') == 'support'])"
    )
    ended = subprocess.run(
        [sys.executable, "-c", said], cwd=ROOT, env=variables, capture_output=True, text=True, check=True, timeout=90
    )
    return ended.stdout.strip()


def test_the_scripted_one_stays_beside_a_real_one_and_a_wrong_name_leaves_it_alone() -> None:
    assert listed(HOLDFAST_DEMO_MODEL=REAL, ANTHROPIC_API_KEY="k") == f"['1', '1-anthropic-{HAIKU}']"
    assert listed(HOLDFAST_DEMO_MODEL=REAL) == listed(HOLDFAST_DEMO_MODEL="nonsense") == "['1']"


def test_no_process_loads_a_providers_client_because_it_knows_the_agent() -> None:
    said = "import sys, demo.agents; print([m for m in ('pydantic_ai', 'anthropic', 'openai') if m in sys.modules])"
    ended = subprocess.run([sys.executable, "-c", said], cwd=ROOT, capture_output=True, text=True, check=True)
    assert ended.stdout == "[]\n"


def test_the_scripted_model_needs_neither_django_nor_the_product() -> None:
    said = "import sys, demo.support_model; print(sorted({m.split('.')[0] for m in sys.modules}))"
    ended = subprocess.run([sys.executable, "-c", said], cwd=ROOT, capture_output=True, text=True, check=True)
    assert not any(f"'{name}'" in ended.stdout for name in ("django", "journal", "runs", "recovery", "config", "httpx"))


@pytest.mark.parametrize("named", [REAL, "openai:gpt-5.2-2026-01-15", "openai-chat:gpt-5.2-2026-01-15"])
def test_the_same_agent_works_with_a_providers_own_address_and_key(
    providers: Providers, monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    for name, value in providers.environment.items():
        monkeypatch.setenv(name, value)
    providers.script(named.partition(":")[2], quickly)
    run = testing.run(support_agent(named), ticket(LARGE), tools=TOOLS, model=testing.REAL, approve=True)
    assert run.result["refunded_cents"] == 17174
    assert {seen.model for seen in providers.requests} == {named.partition(":")[2]}


def test_a_key_that_the_provider_refuses_parks_the_run_with_a_sentence(
    providers: Providers, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in providers.environment.items():
        monkeypatch.setenv(name, value)
    providers.script(HAIKU, quickly)
    providers.fault("authentication", model=HAIKU, times=None)
    run = testing.run(support_agent(REAL), ticket(SMALL), tools=TOOLS, model=testing.REAL)
    assert run.status == "held" and "key" in run.reason
    providers.clear_faults()
    run.resume()
    assert run.result["refunded_cents"] == 4584


def test_the_demo_gives_new_tickets_to_the_model_that_it_was_started_with(desk: Crew) -> None:
    assert promote_support() is True, "it is current from the beginning"
    other = announce_one(support_agent(REAL), serving=False)
    promote_release(release_id=other.id, reason="yesterday's", actor="demo", anyway=True)
    assert promote_support() is False, "no worker serves it yet"
    worker = desk.hire()
    assert promote_support() is True
    current = current_of("support")
    assert current is not None and current.id == support.release_id
    desk.lose(worker)
