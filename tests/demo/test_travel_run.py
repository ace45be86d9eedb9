"""A journey as a run: on the real database, against the real service."""

import signal
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from demo import people
from demo.agents.travel_booking import CONFIRMED
from demo.payments.offers import is_taken, offers
from runs.approvals import decide_approval
from runs.commands import signal_run
from runs.models import Run
from runs.registry import agents, announce
from runs.sdk import start
from tests.rig.crew import Crew, state
from tests.rig.fleet import Fleet
from tests.rig.ledger import Ledger
from tests.rig.robot import APPROVERS

DAYS = [f"2027-03-{day:02}" for day in range(1, 31)]


def trip(to: str = "lisbon", **more: Any) -> dict[str, Any]:
    """To a day on which the cheapest of both kinds can be had."""
    day = next(day for day in DAYS if not any(is_taken(offers(kind, to, day)[0]["id"]) for kind in ("flight", "room")))
    return {"traveller": "mei@example.com", "to": to, "day": day, "decide_within": 60, **more}


def acted(ledger: Ledger) -> list[str]:
    return [effect["action"] for effect in ledger.effects()]


def confirm(run_id: UUID) -> None:
    signal_run(run_id=run_id, name=CONFIRMED, payload=None, actor="traveller")


def approve(desk: Crew, run_id: UUID) -> None:
    """Both bookings."""
    assert desk.drive(run_id).status == "awaiting_approval"
    approve_both(run_id)


def approve_both(run_id: UUID) -> None:
    later = datetime.now(UTC) + people.APPROVED_AFTER + timedelta(seconds=1)
    assert sum(people.approve(run_id, later) for _ in range(4)) == 2


def test_a_confirmed_journey_is_booked_and_its_itinerary_sent(desk: Crew, ledger: Ledger) -> None:
    run_id = start("travel-booking", trip())
    desk.advance(run_id)
    assert acted(ledger) == ["hold", "hold", "mail"]
    confirm(run_id)
    approve(desk, run_id)
    assert desk.drive(run_id).status == "done"
    assert acted(ledger) == ["hold", "hold", "mail", "book", "book", "mail"]
    done = state(run_id).done
    assert done and done["result"]["booked"] is True


def test_a_word_that_comes_early_is_kept(desk: Crew, ledger: Ledger) -> None:
    run_id = start("travel-booking", trip())
    confirm(run_id)
    approve(desk, run_id)
    assert desk.drive(run_id).status == "done"
    assert acted(ledger).count("book") == 2


def test_what_nobody_may_book_is_given_back(desk: Crew, ledger: Ledger) -> None:
    run_id = start("travel-booking", trip())
    confirm(run_id)
    assert desk.drive(run_id).status == "awaiting_approval"
    one, other = state(run_id).unsettled()
    by = {"run_id": run_id, "actor": "ada", "groups": APPROVERS}
    decide_approval(seq=one.seq, verdict="approve", digest=one.digest, note="", **by)
    decide_approval(seq=other.seq, verdict="deny", digest=other.digest, note="too far", **by)
    assert desk.drive(run_id).status == "done"
    assert acted(ledger) == ["hold", "hold", "mail", "book", "release"]
    assert state(run_id).done == {"result": {"booked": False, "why": "too far"}}


def test_without_a_word_in_time_what_was_held_is_given_back(desk: Crew, ledger: Ledger) -> None:
    run_id = start("travel-booking", trip(decide_within=1))
    assert desk.drive(run_id).status == "done"
    assert acted(ledger) == ["hold", "hold", "mail", "release", "release"]
    assert state(run_id).done == {"result": {"booked": False, "why": "the traveller did not answer in time"}}


def test_what_is_gone_is_replaced_by_the_next_cheapest(desk: Crew, ledger: Ledger) -> None:
    day = next(day for day in DAYS if is_taken(offers("flight", "porto", day)[0]["id"]))
    run_id = start("travel-booking", trip("porto") | {"day": day, "decide_within": 1})
    desk.drive(run_id)
    first = next(slot for slot in state(run_id).slots.values() if slot.tool == "hold")
    assert (first.outcome, first.error) == ("failed", "Somebody was quicker: it is taken.")
    assert acted(ledger).count("hold") == 2


def test_nothing_to_be_had_gives_back_what_was(desk: Crew, ledger: Ledger) -> None:
    run_id = start("travel-booking", trip() | {"to": "atlantis", "day": DAYS[0]})
    assert desk.drive(run_id).status == "done"
    assert state(run_id).done == {"result": {"booked": False, "why": f"no flight: Atlantis on {DAYS[0]}"}}
    assert acted(ledger) == []


@pytest.mark.parametrize("action", ["hold", "book", "mail"])
def test_answers_lost_on_the_way_repeat_nothing(desk: Crew, ledger: Ledger, action: str) -> None:
    ledger.fault(action, "drop", times=2)
    run_id = start("travel-booking", trip())
    confirm(run_id)
    approve(desk, run_id)
    assert desk.drive(run_id).status == "done"
    assert acted(ledger) == ["hold", "hold", "mail", "book", "book", "mail"]


def test_travellers_confirm_when_they_have_thought_or_never(desk: Crew, ledger: Ledger) -> None:
    run_ids = [start("travel-booking", trip()) for _ in range(3)]
    for run_id in run_ids:
        desk.advance(run_id)
    now = datetime.now(UTC)
    assert people.let_people_act(now) == 0
    confirming = sum(people.thinking_time(run_id) is not None for run_id in run_ids)
    assert people.let_people_act(now + timedelta(seconds=people.SLOWEST)) == confirming
    assert people.let_people_act(now + timedelta(seconds=people.SLOWEST)) == 0


@pytest.fixture
def demo_fleet(fleet: Fleet, settings: Any) -> Fleet:
    settings.HOLDFAST_AGENTS = ("demo.agents",)
    agents.cache_clear()
    announce()
    fleet.environment |= {"HOLDFAST_AGENTS": "demo.agents"}
    return fleet


@pytest.mark.slow
@pytest.mark.parametrize(
    ("crash", "first_death"),
    [
        ("after-effect:3", "before"),
        ("after-effect:5", "before"),
        ("before-effect:6", "after"),
        ("after-effect:6", "after"),
    ],
)
def test_a_worker_killed_on_the_way_books_once(demo_fleet: Fleet, ledger: Ledger, crash: str, first_death: str) -> None:
    """`first_death`: before or after the bookings are approved."""
    run_id = start("travel-booking", trip())
    confirm(run_id)
    demo_fleet.sweeper()
    first = demo_fleet.worker(crash=crash)
    approving = first_death == "after"
    if approving:
        demo_fleet.rests(run_id, within=60)
        approve_both(run_id)
    demo_fleet.bury(first, within=60)
    demo_fleet.worker()
    if not approving:
        assert demo_fleet.rests(run_id, within=60).status == "awaiting_approval"
        approve_both(run_id)
    demo_fleet.until(lambda: Run.objects.get(id=run_id).status == "done", "the journey is booked", within=60)
    assert sorted(acted(ledger)) == ["book", "book", "hold", "hold", "mail", "mail"]


@pytest.mark.slow
def test_a_worker_killed_while_the_traveller_thinks_gives_back_in_time(demo_fleet: Fleet, ledger: Ledger) -> None:
    run_id = start("travel-booking", trip(decide_within=8))
    demo_fleet.sweeper()
    first = demo_fleet.worker()
    demo_fleet.until(lambda: "mail" in acted(ledger), "the traveller is asked", within=60)
    first.send(signal.SIGKILL)
    demo_fleet.bury(first)
    demo_fleet.worker()
    assert demo_fleet.rests(run_id).status == "done"
    assert acted(ledger)[3:] == ["release", "release"]
