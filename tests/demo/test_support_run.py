"""The support agent as a run: on the real database, with the real client, against the real services."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from demo import model, people
from demo.support_model import quickly
from runs.commands import signal_run
from runs.models import Run
from runs.queries import entries_of
from runs.registry import agents, announce
from runs.sdk import start
from tests.demo.test_support import BROKEN, LARGE, SMALL, ticket
from tests.rig.crew import Crew, state
from tests.rig.fleet import Fleet
from tests.rig.ledger import Ledger
from tests.rig.providers import Providers
from tests.rig.providers import providers as providers


@pytest.fixture(autouse=True)
def scripted(providers: Providers, monkeypatch: pytest.MonkeyPatch) -> Providers:
    providers.script(model.SCRIPTED, quickly)
    for name, value in where(providers).items():
        monkeypatch.setenv(name, value)
    return providers


def where(providers: Providers) -> dict[str, str]:
    return {model.URL: providers.anthropic_url, model.KEY: "scripted"}


def acted(ledger: Ledger) -> list[str]:
    return sorted(effect["action"] for effect in ledger.effects())


def decide(run_id: UUID, verdict: str, note: str = "seen") -> None:
    later = datetime.now(UTC) + people.APPROVED_AFTER + timedelta(seconds=1)
    assert people.approve(run_id, later, verdict, note)


def result(run_id: UUID) -> dict[str, Any]:
    done = state(run_id).done
    assert done is not None
    return dict(done["result"])


def test_a_small_refund_goes_through_by_itself(desk: Crew, ledger: Ledger, scripted: Providers) -> None:
    run_id = start("support", ticket(SMALL))
    run = desk.drive(run_id)
    assert run.status == "done", run.reason
    assert result(run_id)["refunded_cents"] == 4584
    assert acted(ledger) == ["mail", "note", "refund"]
    assert [seen.turn for seen in scripted.answered(model.SCRIPTED)] == [0, 1, 2, 3]


@pytest.mark.parametrize(("verdict", "paid"), [("approve", 17174), ("deny", 0)])
def test_a_large_refund_is_a_persons_to_allow(desk: Crew, ledger: Ledger, verdict: str, paid: int) -> None:
    run_id = start("support", ticket(LARGE))
    assert desk.drive(run_id).status == "awaiting_approval"
    assert acted(ledger) == []
    decide(run_id, verdict, "too much for what happened")
    assert desk.drive(run_id).status == "done"
    assert result(run_id)["refunded_cents"] == paid
    assert acted(ledger) == ["mail", "note"] + ["refund"] * (paid > 0)
    letter = next(effect for effect in ledger.effects() if effect["action"] == "mail")
    assert ("voucher" in letter["args"]["body"]) is (paid == 0)


def test_what_was_refunded_before_is_seen_in_the_orders_history(desk: Crew, ledger: Ledger) -> None:
    for _ in range(2):
        run_id = start("support", ticket(SMALL))
        assert desk.drive(run_id).status == "done"
    assert result(run_id)["refunded_cents"] == 0
    assert acted(ledger).count("refund") == 1


def test_what_the_customer_adds_comes_into_the_conversation(desk: Crew, ledger: Ledger) -> None:
    run_id = start("support", ticket(LARGE))
    desk.drive(run_id)
    signal_run(run_id=run_id, name="message", payload="It was a present.", actor="customer")
    decide(run_id, "approve")
    assert desk.drive(run_id).status == "done"
    letter = next(effect for effect in ledger.effects() if effect["action"] == "mail")
    assert "It was a present." in letter["args"]["body"]


def test_a_provider_with_too_much_to_do_is_asked_again(desk: Crew, ledger: Ledger, scripted: Providers) -> None:
    scripted.fault("rate_limit", model=model.SCRIPTED, turn=1, retry_after=1)
    run_id = start("support", ticket(SMALL))
    assert desk.drive(run_id).status == "done"
    [error] = [entry.body for entry in entries_of(run_id) if entry.kind == "ERROR"]
    assert (error["code"], error["status"]) == ("rate_limited", 429)
    assert acted(ledger) == ["mail", "note", "refund"]


def test_people_decide_about_refunds_and_write_again_once(desk: Crew, ledger: Ledger) -> None:
    run_ids = [start("support", ticket(LARGE, f"{BROKEN} Letter {number}.")) for number in range(6)]
    for run_id in run_ids:
        desk.drive(run_id)
    now = datetime.now(UTC)
    writing = sum(run_id.int // 100 % 10 < people.WRITING_AGAIN_OF_TEN for run_id in run_ids)
    deciding = sum(people.remembered(run_id) for run_id in run_ids)
    assert people.let_people_act(now + people.WRITES_AFTER) == writing
    assert people.let_people_act(now + people.APPROVED_AFTER) == deciding
    assert people.let_people_act(now + people.APPROVED_AFTER) == 0


@pytest.mark.slow
def test_a_worker_killed_amid_an_answer_pays_once_and_notes_the_lost_request(
    fleet: Fleet, ledger: Ledger, settings: Any, scripted: Providers
) -> None:
    settings.HOLDFAST_AGENTS = ("demo.agents",)
    agents.cache_clear()
    announce()
    fleet.environment |= {"HOLDFAST_AGENTS": "demo.agents", **where(scripted)}
    scripted.fault("hold", model=model.SCRIPTED, turn=2, after=8)
    run_id = start("support", ticket(SMALL))
    fleet.sweeper()
    first = fleet.worker()
    fleet.until(
        lambda: any(seen.turn == 2 for seen in scripted.asked(model.SCRIPTED)), "the letter is begun", within=90
    )
    fleet.kill_holder(run_id)
    fleet.bury(first)
    scripted.release()
    fleet.worker()
    fleet.until(lambda: Run.objects.get(id=run_id).status == "done", "the ticket is settled", within=90)
    assert acted(ledger) == ["mail", "note", "refund"]
    assert [seen.turn for seen in scripted.asked(model.SCRIPTED)] == [0, 1, 2, 2, 3]
    lost = [entry.body["lost"] for entry in entries_of(run_id) if entry.kind == "ATTEMPT" and "lost" in entry.body]
    assert len(lost) == 1 and lost[0]["input_tokens"] > 0
