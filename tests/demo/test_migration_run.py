"""The migration as a tree of runs: on the real database, against the real service."""

import signal
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from demo import people
from demo.agents.ledger_migration import shares
from demo.payments.books import BATCHES, batch_of
from runs.commands import answer_ask, cancel_run
from runs.models import Run
from runs.registry import agents, announce
from runs.sdk import start
from tests.rig.crew import Crew, state
from tests.rig.fleet import Fleet
from tests.rig.ledger import Ledger

LEDGER = "2019-q3"
DAMAGED = next(
    n for n in range(1, BATCHES + 1) if (b := batch_of(LEDGER, n)) is not None and b["sum_cents"] != b["total_cents"]
)


def brief(**more: Any) -> dict[str, Any]:
    return {"ledger": LEDGER, "pause": 0, **more}


def entered(ledger: Ledger) -> list[int]:
    return sorted(effect["args"]["batch"] for effect in ledger.effects() if effect["action"] == "enter")


def asking() -> Run:
    [run] = Run.objects.filter(reason__contains="does not add up")
    return run


def answer(value: str) -> None:
    run = asking()
    [slot] = [slot for slot in state(run.id).unsettled() if slot.kind == "ask"]
    answer_ask(run_id=run.id, seq=slot.seq, value=value, actor="ada")


def cut_over(run_id: UUID) -> None:
    """Two people agree to it; one alone does not move the run."""
    later = datetime.now(UTC) + people.APPROVED_AFTER + timedelta(seconds=1)
    assert people.approve(run_id, later)
    waiting = Run.objects.get(id=run_id)
    assert waiting.status == "awaiting_approval" and waiting.intents[0]["granted"] == ["ada"]
    assert people.approve(run_id, later)


def result(run_id: UUID) -> dict[str, Any]:
    done = state(run_id).done
    assert done is not None
    return dict(done["result"])


def test_shards_share_all_batches() -> None:
    for shards in (1, 4, 7, 60):
        parts = list(shares(BATCHES, shards))
        assert [n for first, last in parts for n in range(first, last + 1)] == list(range(1, BATCHES + 1))


@pytest.mark.parametrize(("verdict", "left_out"), [("repair", []), ("skip", [DAMAGED])])
def test_all_batches_are_entered_once_and_the_damaged_one_is_asked_about(
    desk: Crew, ledger: Ledger, verdict: str, left_out: list[int]
) -> None:
    run_id = start("ledger-migration", brief())
    assert desk.drive_tree(run_id, seconds=60).status == "waiting"
    assert DAMAGED not in entered(ledger) and len(entered(ledger)) > BATCHES * 3 // 4 - 1
    answer(verdict)
    assert desk.drive_tree(run_id, seconds=60).status == "awaiting_approval"
    cut_over(run_id)
    assert desk.drive_tree(run_id, seconds=60).status == "done"
    assert entered(ledger) == [n for n in range(1, BATCHES + 1) if n not in left_out]
    repaired = [] if left_out else [DAMAGED]
    expected = {"ledger": LEDGER, "entered": BATCHES - len(left_out), "repaired": repaired, "skipped": left_out}
    assert result(run_id) == expected | {"cut_over": True}
    assert [effect["action"] for effect in ledger.effects()][-2:] == ["cutover", "mail"]


def test_a_cancelled_migration_takes_its_shards_with_it(desk: Crew, ledger: Ledger) -> None:
    run_id = start("ledger-migration", brief(pause=600))
    desk.advance(run_id)
    cancel_run(run_id=run_id, reason="not today", actor="olga")
    desk.drive_tree(run_id)
    assert {run.status for run in Run.objects.all()} == {"cancelled"}


def test_bookkeeping_answers_late(desk: Crew, ledger: Ledger) -> None:
    run_id = start("ledger-migration", brief())
    desk.drive_tree(run_id, seconds=60)
    now = datetime.now(UTC)
    assert people.let_people_act(now) == 0
    assert people.let_people_act(now + people.ANSWERED_AFTER + timedelta(seconds=1)) == 1
    assert desk.drive_tree(run_id, seconds=60).status == "awaiting_approval"
    later = now + people.ANSWERED_AFTER + timedelta(minutes=2)
    assert [people.let_people_act(later) for _ in range(3)] == [1, 1, 0]
    assert desk.drive_tree(run_id, seconds=60).status == "done"


@pytest.mark.slow
def test_workers_killed_on_the_way_enter_every_batch_once(fleet: Fleet, ledger: Ledger, settings: Any) -> None:
    settings.HOLDFAST_AGENTS = ("demo.agents",)
    agents.cache_clear()
    announce()
    fleet.environment |= {"HOLDFAST_AGENTS": "demo.agents"}
    run_id = start("ledger-migration", brief(shards=3, pause=0.05))
    fleet.sweeper()
    for enough in (10, 30):
        worker = fleet.worker()
        fleet.until(lambda enough=enough: len(entered(ledger)) >= enough, f"{enough} batches", within=90)
        worker.send(signal.SIGKILL)
        fleet.bury(worker)
    fleet.worker()
    fleet.until(lambda: Run.objects.filter(reason__contains="does not add up").exists(), "it asks", within=90)
    answer("repair")
    fleet.until(lambda: Run.objects.get(id=run_id).status == "awaiting_approval", "the cutover waits", within=120)
    cut_over(run_id)
    fleet.until(lambda: Run.objects.get(id=run_id).status == "done", "the migration is done", within=120)
    assert entered(ledger) == list(range(1, BATCHES + 1))
