"""A tool's page: its contract in words, its calls just now, and the gate that holds every one of them."""

from decimal import Decimal
from typing import Any, Literal, TypedDict

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone
from pydantic import TypeAdapter

from runs.models import AgentScope, AuditRecord, Gate, Permit, Status
from runs.templatetags.console import schema_word
from tests.pages.conftest import signed_in
from tests.pages.journals import Story, session
from tests.pages.test_agents import EVIL, agent, contract

pytestmark = pytest.mark.django_db

TOOL = "/agents/payer/tools/payout"
PLACE = f"/gates/place?scope=tool%3Apayout&back={TOOL}"
DIALOG = {"HTTP_HX_REQUEST": "true", "HTTP_HX_TARGET": "dialog#dialog"}


def story(tool: str = "payout", **given: Any) -> Story:
    made = Story()
    made.plan()
    made.call(tool, amount=5, **given)
    return made


def test_the_contract_is_told_in_words(victor: Client) -> None:
    policy = {
        "group": "finance",
        "quorum": 2,
        "four_eyes": True,
        "ttl": 3600.0,
        "on_expiry": "deny",
        "remind_every": None,
    }
    returns = {"type": "object", "title": "Receipt", "properties": {"id": {"type": "string"}}}
    secret = {
        "properties": {"card": {"type": "string", "writeOnly": True, "description": "The card."}},
        "required": ["card"],
    }
    agent(tools=[contract("payout", limit={"at_once": 3, "key": "customer_id"}, approval=policy, returns=returns,
                          parameters=secret)])  # fmt: skip
    page = " ".join(victor.get(TOOL).content.decode().split())
    for said in (
        "Keyed", "drops a second call with the same key", "2 of finance", "none of them who asked",
        "It expires after 1 h 00 m, and the agent hears so.", "3 at once for each customer_id, over all agents", "20 s",
        "asked by key", "Receipt", "card", "The card.", "Secret", "with a permit",
    ):  # fmt: skip
        assert said in page or said.capitalize() in page, said


@pytest.mark.parametrize(
    ("returned", "word"),
    [
        (dict[str, Any], "object"), (dict[str, int], "object"), (dict[str, Any] | None, "object or null"),
        (list[str], "array"), (Literal["sent"], "sent"), (Literal[1, 2], "one of [1, 2]"), (bool, "boolean"),
        (TypedDict("Receipt", {"id": str}), "Receipt"), (Decimal, "number or string"),
    ],
)  # fmt: skip
def test_what_a_tool_returns_is_told_by_its_kind(victor: Client, returned: Any, word: str) -> None:
    agent(tools=[contract("payout", returns=TypeAdapter(returned).json_schema())])
    page = victor.get(TOOL).content.decode()
    assert f'<dt>Returns</dt><dd><span class="mono">{word}</span>' in page


def test_a_kind_that_may_be_null_is_told_so_and_whatever_has_no_type_is_anything() -> None:
    assert schema_word({"type": ["object", "null"]}) == "object or null"
    assert schema_word({"properties": {"a": {}}}) == "object" and schema_word({}) == schema_word(None) == "anything"


def test_its_calls_just_now_are_counted_from_runs(victor: Client) -> None:
    agent(tools=[contract("payout", limit={"at_once": 1, "key": None})])
    story().now_is(Status.RUNNING, epoch=1, session=session("w1"))
    lost = story()
    lost.result(outcome="unknown", error="cut")
    lost.now_is(Status.NEEDS_RECONCILIATION, intents=[{"state": "in_doubt", "tool": "payout"}])
    waits = story(gate="approval")
    waits.now_is(Status.AWAITING_APPROVAL, intents=[{"state": "awaiting_approval", "tool": "payout"}])
    story("mail").now_is(Status.RUNNING, epoch=1, session=session("w2"))
    Permit.objects.create(run=waits.run, step=1, attempt=1, scope="tool:payout", key="c")
    page = " ".join(victor.get(TOOL).content.decode().split())
    assert "<dt>In flight</dt><dd>1 " in page and "<dt>In line for its limit</dt><dd>1 " in page
    assert 'tab=approvals&amp;tool=payout">1</a>' in page and 'tab=intents&amp;tool=payout">1</a>' in page


def test_every_call_of_it_is_held_and_let_go_from_its_page(olga: Client) -> None:
    agent()
    agent("other", [contract("payout")])
    session("w1")
    page = olga.get(TOOL).content.decode()
    assert "Hold every payout now" in page and f"/gates/place?scope=tool%3Apayout&amp;back={TOOL}" in page
    dialog = olga.get(PLACE, **DIALOG).content.decode()
    assert "Hold every payout now?" in dialog and "<html" not in dialog and 'type="hidden" name="scope"' in dialog
    given = {"scope": "tool:payout", "reason": "the bank asks", "back": TOOL}
    placed = olga.post(PLACE, given, **DIALOG)
    assert placed.status_code == 204 and placed["HX-Redirect"] == TOOL
    assert olga.post(PLACE, given, **DIALOG).status_code == 204  # a second click
    gate = Gate.objects.get()
    page = " ".join(olga.get(TOOL).content.decode().split())
    assert "Every call of it is held: the bank asks" in page and "By olga since" in page
    assert "In force at 0 of 1 live worker; w1 hears of it" in page and "also holds calls of other" in page
    assert olga.post(f"/gates/{gate.pk}/lift?back={TOOL}", {"reason": "all is well"})["Location"] == TOOL
    page = olga.get(TOOL).content.decode()
    assert "Every call of it is held" not in page and "Held before" in page and "all is well" in page
    assert AuditRecord.objects.filter(act__in=["gate.place", "gate.lift"]).count() == 2


def test_a_gate_that_somebody_placed_first_is_told_and_the_reason_kept(olga: Client, max: Client) -> None:
    agent()
    max.post(PLACE, {"scope": "tool:payout", "reason": "mine"})
    late = olga.post(PLACE, {"scope": "tool:payout", "reason": "my own reason"})
    page = late.content.decode()
    assert late.status_code == 409 and "max" in page and "my own reason" in page and Gate.objects.count() == 1


def test_a_gate_that_is_lifted_meanwhile_is_told_by_whom(olga: Client, max: Client) -> None:
    agent()
    gate = Gate.objects.create(scope="tool:payout", reason="look", actor="olga")
    max.post(f"/gates/{gate.pk}/lift", {"reason": "done"})
    late = olga.post(f"/gates/{gate.pk}/lift", {"reason": "mine"})
    assert late.status_code == 409 and "Lifted already" in late.content.decode() and "By max" in late.content.decode()


def test_a_wider_gate_is_said_too(victor: Client) -> None:
    agent()
    Gate.objects.create(scope="agent:payer", reason="a look", actor="olga")
    assert "A wider gate holds it too: agent:payer" in victor.get(TOOL).content.decode()


def test_the_gates_have_a_page(victor: Client) -> None:
    agent()
    Gate.objects.create(scope="tool:payout", reason="look", actor="olga")
    Gate.objects.create(scope="all", reason="stop", actor="max", lifted_at=timezone.now(), lifted_by="olga")
    page = victor.get("/gates").content.decode()
    assert "<html" in page and "tool:payout" in page and "Lifted by olga" in page
    assert "<html" not in victor.get("/gates", HTTP_HX_REQUEST="true").content.decode()


def test_a_tool_that_the_agent_has_not_is_not_found(victor: Client) -> None:
    agent()
    for address in ("/agents/payer/tools/nothing", "/agents/nobody/tools/payout"):
        assert victor.get(address).status_code == 404


def test_who_may_not_hold_it_sees_that_and_cannot(cast: None) -> None:
    agent()
    for who, may in (("victor", False), ("ada", False), ("olga", True), ("max", True)):
        client = signed_in(who)
        page = client.get(TOOL).content.decode()
        assert (f"back={TOOL}" in page) is may and ("Your role does not allow this" in page) is not may
        assert client.post(PLACE, {}).status_code == (422 if may else 403)


def test_a_tool_of_an_agent_outside_of_ones_scope_is_not_there(cast: None) -> None:
    agent()
    AgentScope.objects.create(user=User.objects.get(username="olga"), agent="another")
    assert signed_in("olga").get(TOOL).status_code == 404


def test_a_contract_of_an_older_release_is_told_as_far_as_it_goes(victor: Client) -> None:
    agent(tools=[{"name": "payout", "effect": "keyed", "probe": False}])
    assert "It does not say." in victor.get(TOOL).content.decode()


def test_markup_in_a_contract_stays_text(cast: None) -> None:
    properties = {"properties": {EVIL: {"type": EVIL, "description": EVIL}}}
    agent(tools=[contract("payout", doc=EVIL, parameters=properties, returns={"title": EVIL, "type": "object"})])
    Gate.objects.create(scope="tool:payout", reason=EVIL, actor=EVIL)
    assert b"<img" not in signed_in("olga").get(TOOL).content


def test_the_agents_page_leads_to_its_tools_and_tells_its_input(olga: Client) -> None:
    takes = {"type": "object", "properties": {"order_id": {"type": "string", "description": "As the shop has it."}}}
    agent(input=takes)
    page = olga.get("/agents/payer").content.decode()
    assert f'href="{TOOL}"' in page and "/agents/payer/start" in page
    assert "order_id" in page and "As the shop has it." in page
