"""POST /runs/{id}/intents/{seq}/reconcile."""

from __future__ import annotations

from typing import Any

import pytest

from journal.entries import Kind
from runs.models import Run
from runs.queries import entries_of
from tests.api import agents
from tests.api.conftest import Cast, Desk, all_at_once, problem


def doubt(cast: Cast, desk: Desk, agent: str) -> dict[str, Any]:
    cast("olga").post("/runs", {"agent": agent})
    desk.work()
    (found,) = cast("ada").get("/intents", state="in_doubt").json()["items"]
    return found  # type: ignore[no-any-return]


def path_of(intent: dict[str, Any]) -> str:
    return f"/runs/{intent['run_id']}/intents/{intent['seq']}/reconcile"


@pytest.fixture
def intent(cast: Cast, desk: Desk) -> dict[str, Any]:
    """A letter of which nobody knows whether it was sent."""
    return doubt(cast, desk, "post")


def test_the_run_waits_for_a_person_and_says_so(cast: Cast, intent: dict[str, Any]) -> None:
    run = cast("victor").get(f"/runs/{intent['run_id']}").json()
    assert run["status"] == "needs_reconciliation" and run["reason"] and run["since"]


def test_happened_settles_it_without_another_call(cast: Cast, desk: Desk, intent: dict[str, Any]) -> None:
    body = {"verdict": "happened", "evidence": "the carrier has it", "result": {"tracking": 7}}
    assert cast("olga").post(path_of(intent), body).status_code == 200
    desk.work()
    assert len(agents.CALLS) == 1
    assert cast("victor").get(f"/runs/{intent['run_id']}").json()["result"] == {"tracking": 7}
    said = next(e for e in entries_of(Run.objects.get().id) if e.kind == Kind.RECONCILE)
    assert said.actor == "olga" and said.body["evidence"] == "the carrier has it"


def test_never_happened_is_202_and_a_worker_sends_it_under_its_own_key(
    cast: Cast, desk: Desk, intent: dict[str, Any]
) -> None:
    body = {"verdict": "never_happened", "evidence": "nothing left the house"}
    assert cast("ada").post(path_of(intent), body).status_code == 202
    assert len(agents.CALLS) == 1, "this process calls no tool"
    desk.work()
    assert [intent["key"]] * 2 == agents.CALLS
    assert cast("victor").get(f"/runs/{intent['run_id']}").json()["result"] == "sent"


def test_probe_is_202_and_the_run_parks_again_when_the_tool_cannot_say(
    cast: Cast, desk: Desk, intent: dict[str, Any]
) -> None:
    answer = cast("ada").post(path_of(intent), {"verdict": "probe", "evidence": "let us ask"})
    assert answer.status_code == 202
    desk.work()
    assert len(agents.CALLS) == 1
    assert cast("victor").get(f"/runs/{intent['run_id']}").json()["status"] == "needs_reconciliation"


def test_a_tool_that_cannot_be_asked_is_409(cast: Cast, desk: Desk) -> None:
    intent = doubt(cast, desk, "parcels")
    refusal = problem(cast("ada").post(path_of(intent), {"verdict": "probe", "evidence": "let us ask"}))
    assert refusal["status"] == 409 and refusal["type"].endswith(":cannot-probe")


def test_abort_ends_the_run_and_calls_nothing(cast: Cast, desk: Desk, intent: dict[str, Any]) -> None:
    answer = cast("max").post(path_of(intent), {"verdict": "abort", "evidence": "too old to matter"})
    assert answer.status_code == 200
    assert answer.json()["status"] == "cancelled" and "too old to matter" in answer.json()["cancelled"]
    desk.work()
    assert len(agents.CALLS) == 1


def test_without_evidence_every_verdict_is_422(cast: Cast, intent: dict[str, Any]) -> None:
    for verdict in ("happened", "never_happened", "probe", "abort"):
        for evidence in ({}, {"evidence": ""}, {"evidence": "  "}):
            assert problem(cast("ada").post(path_of(intent), {"verdict": verdict} | evidence))["status"] == 422
    assert not [e for e in entries_of(Run.objects.get().id) if e.kind == Kind.RECONCILE]


def test_after_an_abort_a_late_answer_learns_of_it(cast: Cast, intent: dict[str, Any]) -> None:
    cast("max").post(path_of(intent), {"verdict": "abort", "evidence": "too old"})
    refusal = problem(cast("ada").post(path_of(intent), {"verdict": "happened", "evidence": "seen"}))
    assert (refusal["status"], refusal["actor"], refusal["verdict"]) == (409, "max", "abort")


def test_many_answers_at_once_settle_it_once(cast: Cast, desk: Desk, intent: dict[str, Any]) -> None:
    body = {"verdict": "happened", "evidence": "seen"}
    callers = [cast("olga"), cast("ada")]
    answers = all_at_once([lambda n=n: callers[n % 2].post(path_of(intent), body) for n in range(10)])  # type: ignore[misc]
    assert sorted(answer.status_code for answer in answers) == [200] + [409] * 9
    settled = [e for e in entries_of(Run.objects.get().id) if e.kind == Kind.OBS and e.settles]
    assert len(settled) == 1
    for answer in answers:
        if answer.status_code == 409:
            assert problem(answer)["actor"] in ("olga", "ada")


def test_a_late_answer_learns_who_was_first_though_the_run_ended(
    cast: Cast, desk: Desk, intent: dict[str, Any]
) -> None:
    body = {"verdict": "happened", "evidence": "seen"}
    cast("olga").post(path_of(intent), body)
    desk.work()
    refusal = problem(cast("ada").post(path_of(intent), body))
    assert refusal["status"] == 409 and refusal["actor"] == "olga"


def test_an_intent_that_is_settled_by_its_tool_is_not_in_doubt(cast: Cast, desk: Desk) -> None:
    run = cast("olga").post("/runs", {"agent": "desk", "input": {"amount_cents": 1}}).json()
    desk.work()
    steps = cast("victor").get(f"/runs/{run['id']}/state").json()["steps"]
    path = f"/runs/{run['id']}/intents/{steps[0]['seq']}/reconcile"
    assert problem(cast("ada").post(path, {"verdict": "happened", "evidence": "seen"}))["status"] == 409


def test_a_file_and_an_id_go_with_the_evidence(cast: Cast, intent: dict[str, Any]) -> None:
    file = {"name": "scan.pdf", "type": "application/pdf", "content": "JVBERg=="}
    body = {"verdict": "happened", "evidence": "row 7", "external_id": "re_1Pq", "evidence_file": file}
    broken = problem(cast("ada").post(path_of(intent), body | {"evidence_file": file | {"content": "not base64!"}}))
    assert (broken["status"], broken["title"]) == (422, "File unreadable")
    assert cast("ada").post(path_of(intent), body).status_code == 200
    entries = cast("ada").get(f"/runs/{intent['run_id']}/journal").json()["items"]
    said = next(e["body"] for e in entries if e["kind"] == "RECONCILE")
    assert (said["evidence"], said["external_id"], said["file"]["name"]) == ("row 7", "re_1Pq", "scan.pdf")


def test_a_late_result_that_is_not_there_is_not_adopted(cast: Cast, intent: dict[str, Any]) -> None:
    path = path_of(intent).replace("/reconcile", "/adopt")
    assert problem(cast("ada").post(path, {"evidence": 1, "reason": "x"}))["type"].endswith(":evidence-useless")
    assert cast("victor").post(path, {"evidence": 1, "reason": "x"}).status_code == 403
