"""What is wrong, risky or needless in how an agent asks its model."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

from runs.agents import Agent
from runs.brakes import Budget
from runs.findings import Finding, place_of
from runs.loops.declared import RESERVED, ModelLoop
from runs.model_names import floating_models, models_in
from runs.tools import Tool

LONGEST = 30.0  # seconds that a stateless run has
USUAL_ANSWER = ModelLoop.timeout  # seconds
# The variable in which a provider's own client looks for its key.
KEYS = {
    "openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY", "google": "GEMINI_API_KEY", "groq": "GROQ_API_KEY",
    "mistral": "MISTRAL_API_KEY", "cohere": "CO_API_KEY", "deepseek": "DEEPSEEK_API_KEY", "xai": "XAI_API_KEY",
    "openrouter": "OPENROUTER_API_KEY", "azure": "AZURE_OPENAI_API_KEY", "huggingface": "HF_TOKEN",
}  # fmt: skip


INSTALLED = ("anthropic", "openai", "openai-chat", "openai-responses")  # clients that come with Holdfast


def of_model(agent: Agent, grace: float | None = None) -> Iterator[Finding]:
    for model, why in floating_models(agent.content).items():
        yield Finding(
            "warning", "W060", f"agent {agent.name} asks {model}, a floating alias: {why}", place(agent),
            "A run may go on with another model than it began with, and no release says so: name a snapshot "
            "(openai:gpt-4o-2024-08-06), and give the agent a new version when you change it.",
        )  # fmt: skip
    if isinstance(agent.decide, ModelLoop):
        for model, why in unknown_models(agent).items():
            yield Finding(
                "warning", "W069", f"agent {agent.name} cannot ask {model}: {why}", place(agent),
                "Its runs are held until there is one: take another model, or install what it needs for the workers.",
            )  # fmt: skip
        yield from _of_budget(agent)
        yield from _of_time(agent, grace)
        for tool in agent.toolbox.values():
            yield from _of_tool(tool)


def refused(agent: Agent) -> Iterator[Finding]:
    """A name that is the loop's own would never reach the tool."""
    if not isinstance(agent.decide, ModelLoop):
        return
    for name in RESERVED:
        if (tool := agent.toolbox.get(name)) is not None:
            yield Finding(
                "error", "E012", f"agent {agent.name} has a tool {name}, which is a tool of the model loop itself",
                place_of(tool.plain), "Give the tool another name.",
            )  # fmt: skip


def unknown_models(agent: Agent) -> dict[str, str]:
    """Why no client can be made for it, by each model for which none can."""
    if not isinstance(agent.decide, ModelLoop):
        return {}
    named = [model for model in agent.decide.names if agent.decide.object_of(model) is None]
    others = [model for model in named if model.partition(":")[0] not in INSTALLED]
    return {model: why for model in others if (why := _why_unknown(model))}


def _why_unknown(model: str) -> str:
    from runs.loops.providers import why_unknown  # seconds to load, for the few models that it is asked of

    return why_unknown(model)


def unset_variables(agent: Agent) -> list[str]:
    """Variables that its requests need and this process does not have, in the order in which they are missed. Of a
    model that cannot be asked at all none would help."""
    content = agent.content.get("model")
    if not isinstance(agent.decide, ModelLoop) or not content:
        return []
    needed: list[str] = []
    unknown = unknown_models(agent)
    for model in models_in(content | {"model": content}):
        if agent.decide.object_of(model) is not None or model in unknown:
            continue
        provider = model.partition(":")[0]
        address, key = (_for(content.get(word), provider) for word in ("base_url", "api_key"))
        needed += [given[1:] for given in (address, key) if given and given.startswith("$")]
        own = KEYS.get(provider.split("-")[0])
        if (
            own is not None and key is None and not (address and own == KEYS["openai"])
        ):  # a server of its own may ask none
            needed.append(own)
    return [name for name in dict.fromkeys(needed) if not os.environ.get(name)]


def _for(given: Any, provider: str) -> str | None:
    if isinstance(given, Mapping):
        given = given.get(provider, given.get(provider.split("-")[0]))
    return given if isinstance(given, str) else None


def place(agent: Agent) -> str:
    """Of the function that asks; a model loop is declared beside its agent, of which nothing has a line."""
    looping = agent.model is None or isinstance(agent.decide, ModelLoop)  # its functions are types and context=
    functions = () if looping or agent.model is None else agent.model.functions
    asks = functions[0] if functions else None
    return place_of(asks) if asks is not None else f"decide= of {agent.name}@{agent.version}"


def _of_budget(agent: Agent) -> Iterator[Finding]:
    budget = agent.budget or Budget()
    if budget.cost is None and budget.tokens is None and budget.steps is None:
        yield Finding(
            "info", "I063", f"agent {agent.name} asks a model, and nothing bounds what a run of it spends",
            place(agent),
            "Give it budget=Budget(cost=…), tokens= or steps=: over it a run is held until a person has looked.",
        )  # fmt: skip
    if budget.cost is None:
        return
    assert isinstance(agent.decide, ModelLoop)
    for model in agent.decide.names:
        if agent.decide.object_of(model) is None and not _is_priced(model):
            yield Finding(
                "warning", "W061", f"agent {agent.name} has a budget of cost, and the price of {model} is not known",
                place(agent),
                "A run is held at its first answer, as nobody can say what it cost: bound tokens= or steps= instead, "
                "or take a model whose price genai-prices knows.",
            )  # fmt: skip


def _is_priced(model: str) -> bool:
    from runs.loops.prices import is_priced  # a second to load, for the few agents that it is asked of

    return is_priced(model)


def _of_time(agent: Agent, grace: float | None) -> Iterator[Finding]:
    assert agent.model is not None
    timeout = agent.model.timeout
    if agent.durability == "stateless" and timeout > LONGEST:
        yield Finding(
            "info", "I064", f"agent {agent.name} is stateless, and one answer of its model may take longer than a run "
            f"({timeout:g} s; a run has {LONGEST:g} s)", place(agent),
            "A run that does not come to its end in that time fails, and what its answers cost is spent: lower "
            "timeout=, or take durability='journal'.",
        )  # fmt: skip
    if grace is not None and timeout > grace and timeout != USUAL_ANSWER:
        yield Finding(
            "info", "I068", f"agent {agent.name}: one answer of its model may take {timeout:g} s, and a worker that "
            f"stops waits {grace:g} s for it", place(agent),
            "An answer that has not come by then is asked for again, and may be paid for twice: raise "
            "HOLDFAST_GRACE_SECONDS or lower timeout=.",
        )  # fmt: skip


def _of_tool(tool: Tool) -> Iterator[Finding]:
    where, contract = place_of(tool.plain), tool.contract
    if not contract["doc"] and tool.effect != "read":
        yield Finding(
            "warning", "W065", f"tool {tool.name}: it acts, and nothing says what it does", where,
            "A model chooses it by its docstring: say there what it does, and when it is not to be called.",
        )  # fmt: skip
    told = contract["parameters"].get("properties", {})
    if silent := [name for name, part in told.items() if not describes(part)]:
        named = f"{', '.join(silent)} {'is' if len(silent) == 1 else 'are'}"
        yield Finding(
            "info", "I066", f"tool {tool.name}: nothing says what {named}", where,
            "A model fills them in by their names alone: Annotated[str, Field(description=…)] says more.",
        )  # fmt: skip


def describes(part: Any) -> bool:
    return isinstance(part, Mapping) and bool(part.get("description") or part.get("enum") or part.get("$ref"))
