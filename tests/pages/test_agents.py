"""Agents with their tools and bounds, and the gates that are placed on them."""

import uuid
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from runs.models import Gate, Permit, Release, Status
from tests.pages.conftest import signed_in
from tests.pages.journals import Story, session

pytestmark = pytest.mark.django_db

EVIL = "</span><img src=x onerror=alert(1)>"


def contract(name: str, effect: str = "keyed", **more: Any) -> dict[str, Any]:
    properties = {"customer_id": {"title": "Customer Id", "type": "string"}, "amount": {"anyOf": [{"type": "integer"}]}}
    return {
        "name": name, "effect": effect, "probe": True, "approval": "predicate", "timeout": 20.0, "max_in_flight": 60.0,
        "key_ttl": 86_400.0, "retry": {"attempts": 5, "backoff": 1.0}, "doc": "Pay it back.",
        "parameters": {"properties": properties},
    } | more  # fmt: skip


def agent(name: str = "payer", tools: list[dict[str, Any]] | None = None, **more: Any) -> Release:
    tools = [contract("payout", limit={"at_once": 3, "key": "customer_id"})] if tools is None else tools
    content = {"agent": name, "version": "4", "driver": "flow", "tools": tools} | more
    return Release.objects.create(id=uuid.uuid4().hex * 2, agent=name, version="4", content=content)


def test_the_agents_are_listed_with_tools_open_runs_and_what_is_held(victor: Client) -> None:
    agent()
    Story().now_is(Status.HELD, "held by olga: a look")
    Gate.objects.create(scope="tool:payout", reason="look first", actor="olga")
    page = victor.get("/agents").content.decode()
    for said in ("/agents/payer", "/agents/refund-desk", "payout", "Keyed", "agent=refund-desk&amp;status=held"):
        assert said in page
    assert page.count("tool:payout") == 3  # at the agent that has the tool, among the gates, and in the conditions


def test_an_agents_page_tells_tools_policies_limits_and_bounds(victor: Client) -> None:
    agent(budget={"steps": 50, "identical_calls": 5}, deadline=3600.0, limit=20, unique="order")
    release = Release.objects.get(agent="payer")
    session(serves=[release.id])
    story = Story()
    Permit.objects.create(run=story.run, step=1, attempt=1, scope="tool:payout", key="c", granted_at=timezone.now())
    Permit.objects.create(run=story.run, step=2, attempt=1, scope="tool:payout", key="c")
    page = victor.get("/agents/payer").content.decode()
    for said in (
        "customer_id: string", "amount: integer", "as its rule says", "asked by key, sent again within 1 d 0 h", "20 s",
        "3 at once for each customer_id", "1 with a permit, 1 in line", "50 steps, 5 identical calls", "1 h 00 m",
        "label order", "Served", "by 1 worker", release.id, "Not measured",
    ):  # fmt: skip
        assert said in page, said


def test_what_journaling_costs_is_measured_on_runs_that_ended(victor: Client) -> None:
    story = Story()
    story.done(result=1)
    story.now_is(Status.DONE, ended_at="2026-11-17T14:02:11Z")
    page = victor.get("/agents/refund-desk").content.decode()
    assert "2.0 commits" in page and "the mean of the last 1 that ended" in page


def test_a_release_with_open_runs_and_no_worker_is_stranded(victor: Client) -> None:
    Story()
    assert "Stranded" in victor.get("/agents/refund-desk").content.decode()


def test_an_agent_that_nobody_announced_is_not_found(victor: Client) -> None:
    answer = victor.get("/agents/nobody")
    assert answer.status_code == 404 and b"No worker has announced" in answer.content


def test_a_tool_is_held_with_a_reason_and_let_go_again(olga: Client) -> None:
    agent()
    session("w1")
    assert "scope=tool%3Apayout&amp;agent=payer" in olga.get("/agents/payer").content.decode()
    place = "/gates/place?scope=tool:payout&agent=payer"
    assert 'value="tool:payout"' in olga.get(place).content.decode()
    placed = olga.post(place, {"scope": "tool:payout", "reason": "the bank asks"}, follow=True)
    page = placed.content.decode()
    gate = Gate.objects.get()
    assert (gate.scope, gate.reason, gate.actor) == ("tool:payout", "the bank asks", "olga")
    assert "Held by a gate" in page and "In force at 0 of 1 live worker; w1 hears of it" in page
    lifted = olga.post(f"/gates/{gate.pk}/lift?agent=payer", {"reason": "all is well"}, follow=True)
    gate.refresh_from_db()
    assert gate.lifted_by == "olga" and "Held by a gate" not in lifted.content.decode()
    assert lifted.redirect_chain[-1][0] == "/agents/payer"


def test_a_gate_that_every_worker_has_heard_of_is_in_force(victor: Client) -> None:
    agent()
    Gate.objects.create(scope="tool:payout", reason="look", actor="olga", created_at="2026-11-17T14:02:11Z")
    session("w1")
    page = victor.get("/agents/payer").content.decode()
    assert "In force at 1 of 1 live worker." in page and "every 2s" not in page
    assert "<html" not in victor.get("/gates?agent=payer", HTTP_HX_REQUEST="true").content.decode()


def test_what_a_gate_lacks_is_said_at_the_field(olga: Client) -> None:
    answer = olga.post("/gates/place", {"scope": "refund", "reason": ""})
    assert answer.status_code == 422 and "Write a reason." in answer.content.decode()
    answer = olga.post("/gates/place", {"scope": "refund", "reason": "x"})
    assert answer.status_code == 422 and "scope is all, agent:X" in answer.content.decode()
    assert not Gate.objects.exists()


def test_a_second_gate_on_a_scope_is_told_whose_the_first_is(olga: Client, max: Client) -> None:
    olga.post("/gates/place", {"scope": "all", "reason": "stop"})
    late = max.post("/gates/place", {"scope": "all", "reason": "stop too"})
    assert late.status_code == 409 and "olga placed gate" in late.content.decode()


def test_a_gate_that_is_lifted_already_is_not_found(olga: Client) -> None:
    assert olga.get("/gates/99/lift").status_code == 404


@pytest.mark.parametrize(("who", "may"), [("victor", False), ("ada", False), ("olga", True), ("max", True)])
def test_gates_are_for_those_who_operate(cast: None, who: str, may: bool) -> None:
    agent()
    client = signed_in(who)
    assert ("/gates/place" in client.get("/agents/payer").content.decode()) is may
    assert client.post("/gates/place", {"scope": "all", "reason": "x"}).status_code == (302 if may else 403)
    gate = Gate.objects.create(scope="tool:x", reason="y", actor="max")
    assert client.post(f"/gates/{gate.pk}/lift", {"reason": "x"}).status_code == (302 if may else 403)


def test_markup_in_contracts_and_gates_stays_text(victor: Client) -> None:
    properties = {"properties": {EVIL: {"type": EVIL, "title": EVIL}}}
    agent(EVIL.replace(" ", "_"), [contract(EVIL, doc=EVIL, parameters=properties, limit={"at_once": 1, "key": EVIL})])
    Gate.objects.create(scope=f"tool:{EVIL}", reason=EVIL, actor=EVIL)
    for address in ("/agents", f"/agents/{EVIL.replace(' ', '_')}", f"/gates/place?scope={EVIL}"):
        answer = signed_in("olga").get(address)
        assert answer.status_code == 200 and b"<img" not in answer.content, address
