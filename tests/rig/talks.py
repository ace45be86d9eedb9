"""Agents that a scripted provider decides: `HOLDFAST_AGENTS=tests.rig.talks`, and `script(providers)` for its answers.

One agent for each story, protocol and way to answer, named by all three. Their tools give the same back whatever was
done before, and whether the call, its probe or a person tells it: so the conversation may be compared byte for byte.
"""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from demo.providers.asked import Asked
from demo.providers.faults import Fault
from demo.providers.turns import Call, Turnlike, call, think, turn
from runs.registry import agents, announce
from runs.sdk import Absent, Agent, Found, Retry, ToolContext, Undecided, tool
from runs.sdk.models import ModelLoop
from tests.rig import wire
from tests.rig.crew import Crew
from tests.rig.fleet import Fleet
from tests.rig.providers import Providers

SOON = Retry(attempts=5, backoff=0.05)
ORDER = "o-1"
PROMPT = "You look after orders. Do what is asked for, then say what you did."
WHY_NOT = "It was paid back last week already."
MODELS = {"messages": "anthropic:{}", "chat": "openai-chat:{}", "responses": "openai:{}"}
ADDRESS = {"openai": "$OPENAI_BASE_URL", "anthropic": "$ANTHROPIC_BASE_URL"}
KEYS = {"openai": "$OPENAI_API_KEY", "anthropic": "$ANTHROPIC_API_KEY"}
LARGE = 40_000  # characters: more than a journal row holds


@tool(effect="read", timeout=5, retry=SOON)
def look(ctx: ToolContext, order: str) -> Any:
    """Looks an order up."""
    wire.begin(ctx)
    return {"order": order, "total_cents": 4200, "note": "für Zoë, 1.50 €"}


@tool(effect="read", timeout=5, retry=SOON)
def look_closely(ctx: ToolContext, order: str) -> Any:
    """Tells everything of an order."""
    wire.begin(ctx)
    return {"order": order, "told": "and so on " * 50}


@tool(effect="keyed", timeout=5, retry=SOON)
def charge(ctx: ToolContext, amount_cents: int) -> Any:
    """Charges the customer."""
    wire.begin(ctx)
    wire.act(ctx, "charge", order_id=ORDER, amount_cents=amount_cents)
    return {"charged": amount_cents}


def find_refund(ctx: ToolContext, amount_cents: int) -> Found | Absent | Undecided:
    found = wire.find_by_key(ctx)
    return Found({"refunded": amount_cents}) if isinstance(found, Found) else found


@tool(effect="keyed", probe=find_refund, timeout=5, retry=SOON)
def refund(ctx: ToolContext, amount_cents: int) -> Any:
    """Pays back."""
    wire.begin(ctx)
    wire.act(ctx, "refund", order_id=ORDER, amount_cents=amount_cents)
    return {"refunded": amount_cents}


gated_refund = tool(effect="keyed", probe=find_refund, timeout=5, retry=SOON, approval=True, name="gated_refund")(
    refund.function
)


@tool(effect="unkeyed", timeout=5, max_in_flight=0.1, retry=SOON)
def letter(ctx: ToolContext, subject: str) -> Any:
    """Writes to the customer."""
    wire.begin(ctx)
    wire.act_unkeyed(ctx, "mail", to="a@b.example", subject=subject, body="")
    return SENT


SENT = {"sent": True}
TOOLS = (look, look_closely, charge, refund, gated_refund, letter)


# -- stories: what the model says, by the number of its answer --------------------------------------------------------


def one(asked: Asked) -> Turnlike:
    return [turn("I write to them.", call("letter", subject="Hello")), "The letter is sent."][asked.turn]


def three(asked: Asked) -> Turnlike:
    """Side by side; then a plan, and one call more; then the end."""
    calls = (call("look", order=ORDER), call("charge", amount_cents=100), call("refund", amount_cents=200))
    told = call("update_plan", done=["looked"], next=["pay back"], decided=["300 in all"])
    return [
        turn(think("Three things at once."), "Let me see.", *calls),
        turn(told, call("refund", amount_cents=300)),
        "Charged once, paid back twice.",
    ][asked.turn]


def approval(asked: Asked) -> Turnlike:
    if not asked.turn:
        return turn(call("gated_refund", amount_cents=400), call("look", order=ORDER))
    return "It was refused." if WHY_NOT in asked.results_of("gated_refund")[0].text else "Paid back."


def large(asked: Asked) -> Turnlike:
    """An answer that does not fit into a row."""
    return [turn(think("long " * (LARGE // 5)), call("refund", amount_cents=500)), "Paid back."][asked.turn]


def clumsy(asked: Asked) -> Turnlike:
    """What it calls first is wrong in every way, beside one call that is right."""
    wrong = (Call("refund", '{"amount_cents": 1'), call("refund", amount_cents="lots"), call("pay_back", now=True))
    return [turn(*wrong, call("look", order=ORDER)), call("refund", amount_cents=600), "Paid back."][asked.turn]


def long(asked: Asked) -> Turnlike:
    """Its conversation becomes too long for the provider, until something is left out of it."""
    if asked.turn < 2:
        return turn(call("look_closely", order=f"o-{asked.turn}"))
    if not asked.results_of("look_closely")[0].text.startswith("[left out"):
        return turn("Too long.", faults=(Fault("context_length", times=None),))
    return [call("refund", amount_cents=700), "Paid back."][asked.turn - 2]


def listens(asked: Asked) -> Turnlike:
    """Ends at once, and again when it was told more."""
    return f"I was told: {'; '.join(asked.said)}"


def hears_beside(asked: Asked) -> Turnlike:
    """Calls first, whatever it is told meanwhile."""
    return [turn(call("refund", amount_cents=800)), listens(asked)][min(asked.turn, 1)]


STORIES = {"one": one, "three": three, "approval": approval}
OTHERS = {
    "large": large, "clumsy": clumsy, "long": long, "listens": listens, "hears-beside": hears_beside, "troubled": one,
    "hurried": one,
}  # fmt: skip


def script(providers: Providers) -> None:
    for name, story in (STORIES | OTHERS).items():
        providers.script(name, story)
    providers.fault("overloaded", model="troubled", times=None)


def loop(*models: str, stream: bool = False, **given: Any) -> ModelLoop:
    first, *others = models
    given = {"prompt": PROMPT, "settings": {"max_tokens": 500}, "base_url": ADDRESS, "api_key": KEYS} | given
    return ModelLoop(first, fallback=others, stream=stream, **given)


def name_of(story: str, protocol: str, stream: bool) -> str:
    return f"{story}-{protocol}-{'streamed' if stream else 'whole'}"


def talker(name: str, decide: ModelLoop) -> Agent:
    return Agent(name=name, version="1", tools=TOOLS, decide=decide)


EACH = [(story, protocol, stream) for story in STORIES for protocol in MODELS for stream in (False, True)]
large_answer = talker("large", loop("anthropic:large", stream=True))
clumsy_caller = talker("clumsy", loop("openai-chat:clumsy", context=lambda run: f"Today's word: {uuid4()}"))
long_talker = talker("long", loop("anthropic:long"))
listener = talker("listens", loop("anthropic:listens", stream=True))
beside_listener = talker("hears-beside", loop("openai-chat:hears-beside"))
moved = talker("moved", loop("anthropic:troubled", "openai-chat:one"))  # asks another where the first is overloaded
hurried = talker("hurried", loop("openai-chat:hurried", stream=True, timeout=1.0))
either = talker("either", loop("anthropic:one", "openai-chat:one"))
# Agents are found by a module's names.
globals().update({
    name_of(*each): talker(name_of(*each), loop(MODELS[each[1]].format(each[0]), stream=each[2])) for each in EACH
})  # fmt: skip


def use(settings: Any, providers: Providers) -> None:
    script(providers)
    settings.HOLDFAST_AGENTS = ("tests.rig.talks",)
    agents.cache_clear()
    announce()


@pytest.fixture
def desk(crew: Crew, providers: Providers, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Crew:
    """Workers in this process on these agents, and the providers that they ask."""
    for name, value in providers.environment.items():
        monkeypatch.setenv(name, value)
    use(settings, providers)
    return crew


@pytest.fixture
def talking(fleet: Fleet, providers: Providers, settings: Any) -> Fleet:
    """The same, as processes."""
    fleet.environment |= {"HOLDFAST_AGENTS": "tests.rig.talks", **providers.environment}
    use(settings, providers)
    return fleet
