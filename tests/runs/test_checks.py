"""manage.py check: each finding names the thing, the place and the fix."""

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from django.core.management import CommandError, call_command
from pydantic import BaseModel, Field, TypeAdapter

from runs.contracts import Finding, findings, is_overkill, of_usual_timeouts, refusals
from runs.inputs import least_input
from runs.model_contracts import unset_variables
from runs.registry import agents
from runs.sdk import Agent, Budget, Fail, Finish, ToolContext, tool
from runs.sdk.models import FunctionModel, ModelLoop
from tests.rig.crew import Crew, start
from tests.rig.ledger import Ledger
from tests.runs import classifiers, dubious
from tests.testing import agents as sound


def of(agent: Any, grace: float | None = None) -> dict[str, Finding]:
    return {finding.id: finding for finding in findings(agent, grace)}


def test_a_parameter_without_a_type_is_named() -> None:
    found = of(dubious.impure)["W030"]
    assert found.says == "tool untyped: its parameter 'order' has no type" and "order: str" in found.fix
    file, _, line = found.place.rpartition(":")
    assert file.endswith("tests/runs/dubious.py")
    assert "@tool" in Path(file).read_text().splitlines()[int(line) - 1]


def test_a_function_that_takes_no_context_is_looked_at_like_others() -> None:
    plain = tool(effect="read", name="plain")(lambda order, most=3: most)
    found = findings(Agent(name="a", version="1", tools=[plain], decide=lambda state: Finish()))
    said = [finding.says for finding in found if finding.id == "W030"]
    assert said == [f"tool plain: its parameter {name!r} has no type" for name in ("order", "most")]


def test_a_default_that_cannot_be_journaled_is_named() -> None:
    assert of(dubious.impure)["W031"].says == "tool forgotten: the default of by cannot be journaled"


def test_windows_and_keys_are_compared() -> None:
    found = of(dubious.impure, grace=20)
    assert "max_in_flight (100000 s) is longer than key_ttl (86400 s)" in found["W041"].says
    assert "max_in_flight (30 s) is shorter than its timeout (90 s)" in found["W042"].says
    assert "raise max_in_flight to 90" in found["W042"].fix
    assert "longer than a worker's grace (20 s)" in found["W043"].says
    assert "it is keyed and has no probe" in found["I040"].says


def test_impure_decisions_are_found_in_the_code_they_call() -> None:
    uses = [finding for finding in findings(dubious.impure) if finding.id == "W050"]
    assert {f.says.split()[3] for f in uses} == {"uuid.uuid4", "random.random", "datetime.now", "time.time"}
    assert all("dubious.py:" in finding.place for finding in uses)
    assert any("run.random(label)" in finding.fix for finding in uses)
    assert "W050" not in of(dubious.pure)


def test_a_decision_that_differs_from_itself_is_shown() -> None:
    found = of(dubious.fickle)["W051"]
    assert "agent fickle decides differently from the same state" in found.says and "order" in found.says


@pytest.mark.parametrize(
    ("model", "floats"),
    [
        ("openai:gpt-4o-2024-08-06", False),
        ("anthropic:claude-sonnet-4-5-20250929", False),
        ("openai:gpt-4-0613", False),
        ("google:gemini-1.5-pro-002", False),
        ("vertex:claude-3-5-sonnet@20241022", False),
        ("ollama:llama3.1:8b-instruct-q4_0", False),
        ("function", False),
        ("policy-1", False),
        ("function:brain", False),
        ("test:test", False),
        ("anthropic:claude-3-5-sonnet-latest", True),
        ("chatgpt-4o-latest", True),
        ("ollama:llama3:latest", True),
        ("openai:gpt-4o", True),
        ("google:gemini-2.5-pro-preview", True),
        ("lumen:large", True),
    ],
)
def test_a_model_that_is_no_snapshot_is_named(model: str, floats: bool) -> None:
    agent = Agent("asks", "1", decide=FunctionModel(lambda state: (Finish(), {}), model=model))
    found = of(agent).get("W060")
    assert (found is not None) is floats
    assert found is None or (model in found.says and "name a snapshot" in found.fix)


class Line(BaseModel):
    sku: str
    count: int = Field(ge=1)


class Order(BaseModel):
    id: str
    kind: Literal["new", "old"]
    lines: list[Line]
    gift: bool | None
    note: str = "none"


def test_an_agent_that_takes_an_input_is_judged_on_the_least_that_it_takes() -> None:
    assert least_input(TypeAdapter(Order).json_schema()) == {"id": "", "kind": "new", "lines": [], "gift": False}
    fickle = Agent(name="f", version="1", tools=[], decide=lambda state: Fail(f"{next(dubious.DICE)}"), input=Order)
    assert "decides differently" in of(fickle)["W051"].says
    picky = Agent(name="p", version="1", tools=[], decide=lambda state: Finish(), input=Line)
    assert "W051" not in of(picky)  # the least of it has a count of 0, which is refused: nothing can be said


def test_sound_agents_are_left_alone() -> None:
    assert [f for f in findings(sound.desk) if f.level != "info"] == []
    assert [f for f in findings(classifiers.classify) if f.level != "info"] == []
    assert is_overkill(sound.scripted) and not is_overkill(sound.desk) and not is_overkill(classifiers.classify)


@pytest.fixture
def said(settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """What `check` says of these modules."""

    def check(*names: str) -> str:
        settings.HOLDFAST_AGENTS = names
        agents.cache_clear()
        out = io.StringIO()
        call_command("check", stdout=out, stderr=out)
        return out.getvalue()

    monkeypatch.syspath_prepend(str(tmp_path))
    yield check
    agents.cache_clear()


@pytest.mark.filterwarnings("ignore::pydantic.json_schema.PydanticJsonSchemaWarning")  # it says the same, less clearly
@pytest.mark.django_db
def test_the_command_prints_them(said: Any) -> None:
    told = said("tests.runs.dubious")
    assert "(holdfast.W042) tool narrow: its window max_in_flight" in told and "HINT: A call could be" in told
    assert told.count("W042") == 1, "a tool of two agents is spoken of once"


@pytest.mark.django_db
def test_a_stateless_agent_that_acts_is_an_error(said: Any, tmp_path: Path) -> None:
    (tmp_path / "acting_agents.py").write_text(
        "from runs.sdk import Agent\nfrom tests.testing.agents import mail\n"
        "acting = Agent('acting', '1', [mail], decide=print, durability='stateless')\n"
    )
    with pytest.raises(CommandError, match=r"E001.*agent acting is stateless, but its tool mail is 'unkeyed'"):
        said("acting_agents")


@pytest.mark.django_db
def test_a_module_that_cannot_be_imported_is_an_error_with_its_place(said: Any, tmp_path: Path) -> None:
    (tmp_path / "broken_agents.py").write_text(
        "from runs.sdk import Agent\nfrom tests.testing.agents import mail\n\n"
        "twice = Agent('twice', '1', [mail, mail], decide=print)\n"
    )
    with pytest.raises(CommandError, match=r"two of its tools have the same name[\s\S]*broken_agents\.py:4"):
        said("broken_agents")


def test_a_journal_that_is_overkill_is_hinted_at_with_what_it_costs(crew: Crew, ledger: Ledger, said: Any) -> None:
    assert crew.drive(start("read", {})).status == "done"
    told = said("tests.rig.agents")
    assert "agent read only reads, and keeps a journal all the same" in told and "commits," in told
    assert "(measured on 1)" in told and "durability='stateless'" in told


@tool(effect="keyed")
def pays(ctx: ToolContext, cents: int, to: Annotated[str, Field(description="whom")]) -> int:
    return cents


@tool(effect="unkeyed")
def paid_by_hand(cents: int) -> int:
    """Somebody pays."""
    return cents


@tool(effect="read")
def update_plan(ctx: ToolContext) -> int:
    """Mine."""
    return 1


def looping(*, tools: Any = (), budget: Budget | None = None, **given: Any) -> Agent:
    return Agent(
        "loops", "1", tools, ModelLoop(**{"model": "anthropic:claude-haiku-4-5-20251001"} | given), budget=budget
    )


def test_a_fallback_of_a_floating_name_is_named_too() -> None:
    found = [f for f in findings(looping(fallback=("openai:gpt-5.2",))) if f.id == "W060"]
    assert [f.says.split(":")[0] for f in found] == ["agent loops asks openai"] and "gpt-5.2" in found[0].says


def test_a_budget_of_cost_needs_models_whose_price_is_known() -> None:
    assert "W061" not in of(looping(budget=Budget(cost=1)))
    found = of(looping(budget=Budget(cost=1), fallback=("openai:our-own-2026-01-01",)))["W061"]
    assert "the price of openai:our-own-2026-01-01 is not known" in found.says and "tokens=" in found.fix


def test_a_loop_that_nothing_bounds_and_tools_that_say_nothing_are_hinted_at() -> None:
    found = of(looping(tools=[pays], timeout=90), grace=30)
    assert found["I063"].level == "info" and "I063" not in of(looping(budget=Budget(tokens=1_000)))
    assert found["W065"].says == "tool pays: it acts, and nothing says what it does"
    assert found["I066"].says == "tool pays: nothing says what cents is"
    assert "may take 90 s, and a worker that stops waits 30 s" in found["I068"].says
    assert "W065" not in of(Agent("asks", "1", [pays], FunctionModel(lambda state: (Finish(), {})))), (
        "no model reads it"
    )


def test_a_provider_that_is_not_there_is_named_and_no_key_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GEMINI_API_KEY", raising=False)
    lost = looping(model="nonsense:abc-2026-01-01", fallback=("google:gemini-2026-01-01",))
    said = [finding.says for finding in findings(lost) if finding.id == "W069"]
    assert said == [
        "agent loops cannot ask nonsense:abc-2026-01-01: no provider is called 'nonsense'",
        "agent loops cannot ask google:gemini-2026-01-01: the library for 'google' is not installed"
        " (an extra of pydantic-ai-slim)",
    ]
    assert unset_variables(lost) == [] and "W069" not in of(looping())


def test_timeouts_that_nobody_set_are_told_of_once_and_only_hinted_at() -> None:
    many = [looping(tools=[pays]), looping(tools=[paid_by_hand])]
    assert not {"W043", "I067", "I068"} & {id for agent in many for id in of(agent, grace=25)}
    [told] = of_usual_timeouts(many, 25)
    assert (told.level, told.id) == ("info", "I067")
    assert told.says == (
        "a worker that stops waits 25 s, and the usual timeout is 60 s for a call, 120 s for an answer of a model"
    )
    assert [*of_usual_timeouts(many, 120)] == []


def test_a_tool_with_a_name_of_the_loops_own_is_refused() -> None:
    assert "a tool update_plan, which is" in of(looping(tools=[update_plan]))["E012"].says
    assert refusals(looping(tools=[update_plan]))[0].id == "E012"
    assert not refusals(Agent("asks", "1", [update_plan], FunctionModel(lambda state: (Finish(), {}))))


def test_a_loop_that_only_reads_is_no_overkill() -> None:
    assert not is_overkill(looping(tools=[update_plan])), "its answers were paid for"


def test_variables_that_are_not_set_are_named_and_never_their_values(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "MY_KEY", "MY_URL"):
        monkeypatch.delenv(name, raising=False)
    both = looping(fallback=("openai:gpt-5.2-2026-01-01",))
    assert unset_variables(both) == ["ANTHROPIC_API_KEY", "OPENAI_API_KEY"]
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    assert unset_variables(both) == ["ANTHROPIC_API_KEY"]
    assert unset_variables(looping(base_url="$MY_URL", api_key="$MY_KEY")) == ["MY_URL", "MY_KEY"]
    assert unset_variables(looping(model="openai:local", base_url="http://here")) == []
    assert unset_variables(Agent("asks", "1", [], FunctionModel(lambda state: (Finish(), {})))) == []
