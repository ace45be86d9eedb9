"""What becomes of the calls of an agent of pydantic-ai: side by side, unknown, failed, of a server."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import httpx2
import pytest
from mcp.server import MCPServer
from pydantic_ai import Agent, ModelRetry, TextPart, ToolFailed
from pydantic_ai.capabilities import NativeTool
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.models.test import TestModel
from pydantic_ai.native_tools import WebSearchTool
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.toolsets import FunctionToolset

from runs.calling import current_call
from runs.integrations.pydantic_ai import journaled
from runs.outcomes import Found, TransientError
from runs.sdk import Secret
from runs.testing import REAL, Trial
from tests.integrations.desks import ACTED, ASKED, act, call, scripted
from tests.integrations.test_journaled_approvals import told, trial_of


def one_tool(tool: Callable[..., Any], *calls: Any) -> Agent[None, str]:
    agent = Agent(scripted(list(calls or [call(tool.__name__, "c1")]), [TextPart("said")]))
    agent.tool_plain(tool)
    return agent


class TestAnException:
    def test_leaves_the_outcome_unknown_and_the_model_in_the_dark(self) -> None:
        def pay() -> str:
            act("pay")
            raise ConnectionError("the line is dead")

        trial = trial_of(one_tool(pay))
        assert trial.status == "needs_reconciliation"
        assert len(ASKED) == 1

    def test_a_person_says_that_it_happened(self) -> None:
        def pay() -> str:
            raise ConnectionError("the line is dead")

        trial = trial_of(one_tool(pay)).reconcile("pay", happened=True, result={"receipt": 7})
        assert trial.result == "said"
        assert told("c1") == ("success", {"receipt": 7})

    def test_a_person_says_that_it_did_not_and_it_is_sent_again(self) -> None:
        def pay() -> str:
            act("pay")
            if len(ACTED) == 1:
                raise ConnectionError("the line is dead")
            return "paid"

        trial = trial_of(one_tool(pay)).reconcile("pay", happened=False)
        assert trial.rest().result == "said"
        assert ACTED[0][0] == ACTED[1][0] == trial.calls[0].key
        assert told("c1") == ("success", "paid")

    def test_a_probe_says_what_happened(self) -> None:
        def pay() -> str:
            raise ConnectionError("the line is dead")

        trial = trial_of(one_tool(pay), effects={"pay": "keyed"}, probes={"pay": lambda ctx: Found("paid before")})
        assert trial.result == "said"
        assert told("c1") == ("success", "paid before")

    def test_of_a_read_is_tried_again(self) -> None:
        def look() -> str:
            act("look")
            if len(ACTED) < 3:
                raise ConnectionError("the line is dead")
            return "seen"

        trial = trial_of(one_tool(look), effects={"look": "read"})
        assert trial.result == "said"
        assert len(ACTED) == 3

    def test_that_surely_nothing_happened_is_tried_again(self) -> None:
        def pay() -> str:
            act("pay")
            if len(ACTED) < 2:
                raise TransientError("busy")
            return "paid"

        assert trial_of(one_tool(pay)).result == "said"
        assert len(ACTED) == 2


def test_a_tool_that_says_that_it_failed_has() -> None:
    def pay() -> str:
        raise ToolFailed("no money")

    trial = trial_of(one_tool(pay))
    assert trial.calls[0].outcome == "failed"
    assert told("c1") == ("failed", "no money")


def test_a_tool_that_asks_for_other_arguments_is_asked_with_others() -> None:
    def pay(cents: int) -> str:
        if cents < 100:
            raise ModelRetry("that is too little")
        return "paid"

    agent = Agent(scripted([call("pay", "c1", cents=1)], [call("pay", "c2", cents=200)], [TextPart("said")]))
    agent.tool_plain(pay)
    trial = trial_of(agent)
    assert trial.result == "said"
    assert told("c1")[0] == "retried"
    assert trial.calls[0].result == {"kind": "model_retry", "message": "that is too little"}


def test_arguments_may_have_any_name() -> None:
    def pay(id: str, plan: str, thought: int, tool: str) -> str:
        act("pay", id=id)
        return f"{id} {plan} {thought} {tool}"

    trial = trial_of(one_tool(pay, call("pay", "c1", id="i", plan="p", thought=1, tool="t")))
    assert trial.result == "said"
    assert told("c1") == ("success", "i p 1 t")


def test_a_result_that_looks_like_the_librarys_words_is_the_result() -> None:
    def pay() -> dict[str, str]:
        return {"kind": "model_retry", "message": "mine"}

    assert trial_of(one_tool(pay)).result == "said"
    assert told("c1") == ("success", {"kind": "model_retry", "message": "mine"})


def test_the_key_is_known_within_the_tool() -> None:
    keys = []

    async def pay() -> str:
        await asyncio.sleep(0)
        keys.append(current_call().key)
        return await asyncio.to_thread(lambda: current_call().key)

    trial = trial_of(one_tool(pay))
    assert keys == [trial.calls[0].key]
    assert told("c1") == ("success", keys[0])


def test_a_tool_that_is_added_after_the_declaration_is_refused() -> None:
    def pay() -> str:
        return ""

    agent = one_tool(pay)
    declared = journaled(agent, name="desk", version="1")
    agent.tool_plain(lambda: "", name="late")
    trial = Trial(declared, "go", tools=REAL).rest()
    assert trial.status == "failed"
    assert "the tool late was added after journaled()" in trial.reason


def test_what_a_provider_runs_by_itself_waits_for_a_word() -> None:
    model = scripted([TextPart("said")])
    model._profile = {"supported_native_tools": frozenset({WebSearchTool})}  # type: ignore[assignment]
    agent = Agent(model, capabilities=[NativeTool(WebSearchTool())])
    assert "web_search" in trial_of(agent).reason
    assert trial_of(agent, native={"web_search": "read"}).result == "said"


class Charges:
    """An MCP server in this process."""

    def __init__(self) -> None:
        self.server, self.charged, self.listed = MCPServer("desk"), [], 0

        @self.server.tool()
        def charge(cents: int) -> str:
            """Take money."""
            self.charged.append(cents)
            return f"charged {cents}"

        @self.server.tool()
        def look(order: str) -> dict[str, str]:
            return {"order": order}

    def agent(self) -> Agent[None, str]:
        turns = [call("charge", "c1", cents=5), call("look", "c2", order="o-1")], [TextPart("said")]
        return Agent(scripted(*turns), toolsets=[MCPToolset(self.server, id="desk")])


class TestAServersTools:
    def test_are_tools_with_an_effect_class_each(self) -> None:
        desk = Charges()
        trial = trial_of(desk.agent(), effects={"desk:charge": "keyed", "desk:*": "read"})
        assert trial.result == "said"
        assert [(slot.tool, slot.effect) for slot in trial.calls] == [
            ("look_up", "read"), ("desk:charge", "keyed"), ("desk:look", "read"),
        ]  # fmt: skip
        assert desk.charged == [5]
        assert told("c1") == ("success", "charged 5")

    def test_are_unkeyed_if_nobody_says_otherwise(self) -> None:
        assert {slot.effect for slot in trial_of(Charges().agent()).calls} == {"read", "unkeyed"}

    def test_are_approved_like_any_other(self) -> None:
        desk = Charges()
        trial = trial_of(desk.agent(), approval={"desk:charge": True})
        assert trial.status == "awaiting_approval" and not desk.charged
        trial.edit({"cents": 3}, "desk:charge").approve("desk:charge")
        assert trial.result == "said"
        assert desk.charged == [3]

    @pytest.mark.parametrize("point", ["after-effect", "before-outcome", "after-outcome", "before-effect"])
    def test_happen_once_though_the_worker_is_lost(self, point: str) -> None:
        desk = Charges()
        ACTED.clear(), ASKED.clear()
        agent = journaled(desk.agent(), name="desk", version="1", effects={"desk:*": "read", "desk:charge": "unkeyed"})
        trial = Trial(agent, "go", tools=REAL)
        trial.crash_at(point, 2)
        trial.finish()
        if trial.status == "needs_reconciliation":
            done = bool(desk.charged)
            trial.reconcile("desk:charge", happened=done, result="charged 5" if done else None)
        assert trial.rest().result == "said"
        assert desk.charged == [5]


class TestWhatCannotBeJournaled:
    def refused(self, agent: Any, **given: Any) -> str:
        with pytest.raises(ValueError, match="journaled agent desk: ") as refusal:
            journaled(agent, name="desk", version="1", **given)
        return str(refusal.value)

    def test_a_model_that_is_several(self) -> None:
        assert "FallbackModel" in self.refused(Agent(FallbackModel(TestModel(), TestModel())))

    def test_no_model(self) -> None:
        assert "no model" in self.refused(Agent())

    def test_an_effect_of_a_tool_that_is_not_there(self) -> None:
        def pay() -> str:
            return ""

        assert "no tool 'pya'; it has pay" in self.refused(one_tool(pay), effects={"pya": "read"})

    def test_two_tools_of_one_name(self) -> None:
        first, second = FunctionToolset(id="a"), FunctionToolset(id="b")
        for toolset in (first, second):
            toolset.add_function(lambda: "", name="pay")
        agent = Agent(TestModel(), toolsets=[first, second.prefixed("b")])
        assert "two of its tools have the name pay" in self.refused(agent)

    def test_a_toolset_without_an_id(self) -> None:
        assert "`id`" in self.refused(Agent(TestModel(), toolsets=[FunctionToolset([lambda: ""])]))

    def test_a_probed_tool_without_a_probe(self) -> None:
        def pay() -> str:
            return ""

        assert "needs probe=" in self.refused(one_tool(pay), effects={"pay": "probed"})

    def test_a_setting_that_no_tool_has(self) -> None:
        def pay() -> str:
            return ""

        assert "not 'timout'" in self.refused(one_tool(pay), tools={"pay": {"timout": 1}})

    def test_a_limit_by_an_argument_that_the_tool_has_not(self) -> None:
        def pay(account: str) -> str:
            return ""

        assert "customer" in self.refused(one_tool(pay), tools={"pay": {"limit": "customer"}})
        journaled(one_tool(pay), name="desk", version="1", tools={"pay": {"limit": "account"}})

    def test_a_transport_that_retries_unseen(self) -> None:
        class TenacityTransport(httpx2.AsyncHTTPTransport):
            pass

        client = httpx2.AsyncClient(transport=TenacityTransport())
        model = OpenAIChatModel("any", provider=OpenAIProvider(api_key="any", http_client=client))
        assert "retries unseen" in self.refused(Agent(model))

    def test_a_provider_that_acts_by_itself(self) -> None:
        assert "has to be read" in self.refused(Agent(TestModel()), native={"web_search": "keyed"})

    def test_a_tool_that_is_told_a_secret(self) -> None:
        def sign_in(password: Secret[str]) -> str:
            return ""

        assert "the tool sign_in has a Secret parameter" in self.refused(one_tool(sign_in))

    def test_what_is_no_agent(self) -> None:
        assert "takes a pydantic_ai.Agent" in self.refused(threading.Thread())
