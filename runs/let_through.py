"""How a call is let through: in which effect class, by whose approval, or why it is refused. Then, and now. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from runs.agents import Agent
from runs.engine import drafts
from runs.moves import Call
from runs.outcomes import describe
from runs.policies import ANY_ONE
from runs.secrets import SecretUnreadable, struck_text, words_of
from runs.slots import Slot


def way_recorded(slot: Slot, otherwise: dict[str, Any] | None) -> dict[str, Any]:
    """`otherwise`: for the policy, where a cut has left the request for approval out."""
    policy = slot.approval.policy.content if slot.approval is not None else otherwise or ANY_ONE.content
    refused = (slot.error or "") if slot.gate == "invalid" else ""
    return told_way(slot.effect, policy if slot.gate == "approval" else None, refused)


def way_of(agent: Agent, call: Call) -> dict[str, Any]:
    """How the call would be let through now: its effect class, and who has to approve it; or why it is refused."""
    tool = agent.toolbox[call.tool]
    try:
        refused = "; ".join(drafts.faults(agent, call))
    except Exception as error:
        refused = describe(error)
    if refused:
        return told_way(tool.effect, None, without_secrets(refused, call))
    try:
        policy = tool.policy_for(deepcopy(call.args))
    except BaseException as error:  # an agent's code, like any other of it
        said = f"whether it needs approval cannot be said: its predicate raised {describe(error)}"
        return told_way(tool.effect, None, without_secrets(said, call))
    return told_way(tool.effect, policy.content if policy is not None else None, "")


def told_way(effect: str, approval: dict[str, Any] | None, refused: str) -> dict[str, Any]:
    return {"effect": effect, "approval": approval} | ({"refused": refused} if refused else {})


def without_secrets(text: str, call: Call) -> str:
    try:
        return struck_text(text, tuple(words_of(call.args)))
    except (SecretUnreadable, RecursionError):  # the latter: a value that contains itself, which is refused anyway
        return struck_text(text)


def changed_way(tool: str, then: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """What differs in how a call is let through, in a sentence."""
    said = []
    if "refused" in then:
        return f"{tool} refused these arguments; it would be called now."
    if then["effect"] != now["effect"]:
        said.append(f"its effect class was {then['effect']} and is {now['effect']} now")
    if then["approval"] is None and now["approval"] is not None:
        said.append(f"it was sent unasked, and would wait for approval by {who(now['approval'])} now")
    elif then["approval"] is not None and now["approval"] is None:
        said.append(f"it waited for approval by {who(then['approval'])}, and would be sent unasked now")
    elif then["approval"] != now["approval"]:
        parts = [f"{name}: {then['approval'].get(name)!r}, now {value!r}" for name, value in now["approval"].items()
                 if then["approval"].get(name) != value]  # fmt: skip
        said.append(f"its approval has another policy ({'; '.join(parts)})")
    return f"{tool}: {'; '.join(said)}."


def who(policy: Mapping[str, Any]) -> str:
    count = policy.get("quorum", 1)
    return f"{policy.get('group')}" if count == 1 else f"{count} of {policy.get('group')}"
