"""POST /runs/{id}/intents/{seq}/approval."""

from __future__ import annotations

from typing import Any

import pytest

from journal.entries import Kind
from runs.models import Run
from runs.queries import entries_of
from tests.api import agents
from tests.api.conftest import Cast, Desk, all_at_once, problem


@pytest.fixture
def intent(cast: Cast, desk: Desk) -> dict[str, Any]:
    """A refund that waits for approval."""
    cast("olga").post("/runs", {"agent": "desk", "input": {"amount_cents": 12_000}})
    desk.work()
    (found,) = cast("ada").get("/intents", state="awaiting_approval").json()["items"]
    return found  # type: ignore[no-any-return]


def path_of(intent: dict[str, Any]) -> str:
    return f"/runs/{intent['run_id']}/intents/{intent['seq']}/approval"


def decisions(intent: dict[str, Any]) -> list[Any]:
    entries = entries_of(Run.objects.get().id)
    return [e for e in entries if e.kind == Kind.APPROVAL and e.body["verdict"] != "requested"]


def test_the_intent_shows_exactly_what_would_be_done(intent: dict[str, Any]) -> None:
    assert intent["tool"] == "refund" and intent["args"] == {"amount_cents": 12_000} and intent["effect"] == "keyed"
    assert intent["key"] == f"{intent['run_id']}:1" and intent["step"] == 1 and len(intent["digest"]) == 64
    assert intent["state"] == "awaiting_approval" and intent["since"].endswith("Z")


def test_approved_it_runs_once_under_the_name_of_who_approved(cast: Cast, desk: Desk, intent: dict[str, Any]) -> None:
    body = {"verdict": "approve", "digest": intent["digest"], "note": "checked"}
    assert cast("ada").post(path_of(intent), body).status_code == 200
    desk.work()
    assert [intent["key"]] == agents.CALLS
    (decision,) = decisions(intent)
    assert decision.actor == "ada" and decision.body["note"] == "checked"
    assert cast("ada").get("/intents").json()["items"] == []


def test_denied_it_never_runs_and_the_agent_hears_why(cast: Cast, desk: Desk, intent: dict[str, Any]) -> None:
    body = {"verdict": "deny", "digest": intent["digest"], "note": "too much"}
    assert cast("ada").post(path_of(intent), body).status_code == 200
    desk.work()
    assert agents.CALLS == []
    result = cast("ada").get(f"/runs/{intent['run_id']}").json()["result"]
    assert result == {"outcome": "denied", "why": "too much"}


def test_a_missing_or_wrong_digest_is_409_and_decides_nothing(cast: Cast, intent: dict[str, Any]) -> None:
    for digest in ({}, {"digest": None}, {"digest": ""}, {"digest": "0" * 64}):
        assert problem(cast("ada").post(path_of(intent), {"verdict": "approve"} | digest))["status"] == 409
    assert decisions(intent) == []


def test_edited_arguments_are_asked_for_anew_and_are_what_runs(cast: Cast, desk: Desk, intent: dict[str, Any]) -> None:
    body = {"verdict": "edit", "digest": intent["digest"], "args": {"amount_cents": 7_000}, "note": "half"}
    assert cast("ada").post(path_of(intent), body).status_code == 200
    desk.work()
    (anew,) = cast("ada").get("/intents", state="awaiting_approval").json()["items"]
    assert anew["seq"] == intent["seq"] and anew["digest"] != intent["digest"] and anew["key"] == intent["key"]
    assert anew["args"] == {"amount_cents": 7_000} and anew["asked_args"] == {"amount_cents": 12_000}
    assert anew["edited"] == {"by": "ada", "args": {"amount_cents": 7_000}} and "ada changed" in anew["why"]
    late = problem(cast("max").post(path_of(intent), {"verdict": "approve", "digest": intent["digest"]}))
    assert late["status"] == 409
    assert cast("max").post(path_of(intent), {"verdict": "approve", "digest": anew["digest"]}).status_code == 200
    desk.work()
    assert list(agents.CALLS) == [intent["key"]]
    assert cast("ada").get(f"/runs/{intent['run_id']}").json()["result"] == {"refunded": 7_000}


def test_what_the_tool_would_refuse_is_named_field_by_field(cast: Cast, intent: dict[str, Any]) -> None:
    for args, field in (
        ({}, "args.amount_cents"),
        ({"amount_cents": "much"}, "args.amount_cents"),
        ({"amount_cents": 1, "to": "me"}, "args.to"),
        (None, "args"),
    ):
        body = {"verdict": "edit", "digest": intent["digest"], "args": args}
        refusal = problem(cast("ada").post(path_of(intent), body))
        assert refusal["status"] == 422 and [e["field"] for e in refusal["errors"]] == [field], refusal
    assert decisions(intent) == []


def test_a_question_back_is_answered_before_anybody_approves(cast: Cast, desk: Desk, intent: dict[str, Any]) -> None:
    ada, olga = cast("ada"), cast("olga")
    asked = {"verdict": "ask", "digest": intent["digest"], "note": "Whose order is it?"}
    assert problem(ada.post(path_of(intent), asked | {"note": " "}))["status"] == 422
    assert ada.post(path_of(intent), asked).json()["status"] == "awaiting_approval"
    (shown,) = ada.get("/intents").json()["items"]
    assert shown["question"]["by"] == "ada" and shown["question"]["text"] == "Whose order is it?"
    approve = {"verdict": "approve", "digest": intent["digest"]}
    refusal = problem(ada.post(path_of(intent), approve))
    assert refusal["status"] == 409 and refusal["actor"] == "ada" and refusal["question"] == "Whose order is it?"
    path = f"/runs/{intent['run_id']}/intents/{intent['seq']}/question"
    assert problem(cast("victor").post(path, {"text": "mine"}))["status"] == 403
    assert olga.post(path, {"text": "Lena's, of May"}).status_code == 200
    assert problem(olga.post(path, {"text": "again"}))["status"] == 409
    assert ada.post(path_of(intent), approve).status_code == 200
    desk.work()
    assert list(agents.CALLS) == [intent["key"]]
    assert [e.body["verdict"] for e in decisions(intent)] == ["asked", "answered", "granted"]


def test_an_unknown_verdict_is_422(cast: Cast, intent: dict[str, Any]) -> None:
    body = {"verdict": "perhaps", "digest": intent["digest"]}
    assert problem(cast("ada").post(path_of(intent), body))["status"] == 422


def test_the_decider_cannot_be_named_in_the_request(cast: Cast, intent: dict[str, Any]) -> None:
    body = {"verdict": "approve", "digest": intent["digest"], "actor": "max"}
    assert problem(cast("ada").post(path_of(intent), body))["errors"][0]["field"] == "actor"


def test_a_seq_that_is_no_intent_is_404(cast: Cast, intent: dict[str, Any]) -> None:
    path = f"/runs/{intent['run_id']}/intents/1/approval"
    assert problem(cast("ada").post(path, {"verdict": "deny", "digest": "x"}))["status"] == 404


def test_twenty_decisions_at_once_make_one_and_the_others_learn_whose(
    cast: Cast, desk: Desk, intent: dict[str, Any]
) -> None:
    """Twenty approvals by two people and one rejection, while a worker takes up whatever is decided."""
    ada, max_ = cast("ada"), cast("max")
    bodies = [{"verdict": "approve", "digest": intent["digest"]} for _ in range(20)]
    bodies.append({"verdict": "deny", "digest": intent["digest"], "note": "no"})
    calls = [lambda c=(ada, max_)[n % 2], b=body: c.post(path_of(intent), b) for n, body in enumerate(bodies)]  # type: ignore[misc]
    with desk.at_work():
        answers = all_at_once(calls)  # type: ignore[arg-type]
    (decision,) = decisions(intent)
    assert sorted(answer.status_code for answer in answers) == [200] + [409] * 20
    for answer in answers:
        if answer.status_code == 409:
            refusal = problem(answer)
            assert refusal["type"].endswith(":already-decided")
            assert (refusal["actor"], refusal["verdict"]) == (decision.actor, decision.body["verdict"])
            assert refusal["at"].endswith("Z")
    desk.work()
    assert len(agents.CALLS) == (decision.body["verdict"] == "granted")


def test_a_decision_after_the_run_ended_still_learns_who_decided(
    cast: Cast, desk: Desk, intent: dict[str, Any]
) -> None:
    body = {"verdict": "approve", "digest": intent["digest"]}
    cast("ada").post(path_of(intent), body)
    desk.work()
    refusal = problem(cast("max").post(path_of(intent), body))
    assert refusal["status"] == 409 and (refusal["actor"], refusal["verdict"]) == ("ada", "granted")


def test_an_intent_that_needs_no_approval_is_409(cast: Cast, desk: Desk) -> None:
    run = cast("olga").post("/runs", {"agent": "post"}).json()
    desk.work()
    (found,) = cast("ada").get("/intents").json()["items"]
    body = {"verdict": "approve", "digest": found["digest"]}
    assert problem(cast("ada").post(path_of(found), body))["status"] == 409
    assert found["run_id"] == run["id"] and found["state"] == "in_doubt"
