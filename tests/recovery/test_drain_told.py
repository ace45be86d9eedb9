"""What is told of a drain: before it is ordered, and while it is under way."""

from __future__ import annotations

import time
from collections.abc import Callable
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.db.models import F

from journal import crash
from recovery.drains import (
    conditions,
    drains_seen,
    find_drain,
    preview,
    progress,
)
from recovery.errors import DrainNotFound
from recovery.in_flight import InFlight, held_runs, in_flight, reach_of
from runs.access import set_scope
from runs.gates import place_gate
from runs.models import Run
from tests.recovery.draining import becomes, order
from tests.rig.crew import Crew, journal, start
from tests.rig.ledger import Ledger

# -- what is in flight -------------------------------------------------------------------------------------------------


def test_of_a_tool_its_calls_under_way_are_in_flight_and_no_others(crew: Crew, fly: Callable[..., UUID]) -> None:
    run_id = fly()
    assert [one.run_id for one in in_flight(reach_of("tool:charge"))] == [run_id]
    assert in_flight(reach_of("tool:letter")) == []
    drain = order("tool:charge")
    assert drain.in_flight == 1
    assert becomes(drain, "done").phase == "done"


def test_a_model_request_is_told_as_one_also_before_the_first_decision(crew: Crew) -> None:
    worker = crew.hire()
    run_id = start("model", {})
    seen: list[InFlight] = []

    def look(name: str) -> None:
        if name == "after-commit" and not seen and journal(run_id) == ["START", "ATTEMPT"]:
            seen.extend(in_flight(reach_of("agent:model")))
            connection.close()

    crash.hook = look
    worker.advance(run_id, Run.objects.get(id=run_id).release_id)
    crash.hook = None
    (one,) = seen
    assert one.call is not None
    assert (one.does, one.call.seq, one.call.step, one.call.key) == ("model", 2, None, "")
    assert one.doing.startswith("model ") and one.ends_by > one.since


def test_a_deadline_below_the_longest_timeout_says_so_before_it_starts(crew: Crew) -> None:
    crew.hire()
    seen = preview("agent:slow", 5)
    assert seen.longest is not None and seen.longest.seconds > 5
    assert seen.too_short.startswith("The deadline of 5 s is below the longest timeout in the scope: ")
    assert seen.warnings == [seen.too_short]
    assert preview("agent:slow", seen.longest.seconds).warnings == []
    assert preview("agent:nobody", 5).longest is None


def test_runs_that_would_have_nowhere_to_go_are_told(crew: Crew, fly: Callable[..., UUID]) -> None:
    fly()
    start("chain", {"steps": 1, "effect": "read"})
    (alone,) = [one for one in preview("worker:w1", 600).nowhere if one.has_runs]
    assert (alone.release, alone.runs, alone.queued) == ("chain@1", 1, 1)
    told = (
        "Runs of chain@1 would have nowhere to go until another worker serves it: 1 in flight, 1 queued, and new runs."
    )
    *_, runs, new = preview("region:local", 600).warnings
    assert runs == told and new.startswith("New runs of ") and " more would wait until another worker" in new
    crew.hire()
    assert preview("worker:w1", 600).nowhere == []
    assert preview("agent:chain", 600).nowhere == [], "there they wait at the gate"
    place_gate(scope="worker:w2", reason="look", actor="max")
    assert preview("worker:w1", 600).nowhere, "one that is stopped itself takes nothing"


def test_runs_that_wait_under_a_release_that_nobody_else_serves_have_nowhere_to_go(crew: Crew, ledger: Ledger) -> None:
    crew.drive(start("signals", {"names": ["go"]}))
    (alone,) = [one for one in preview("worker:w1", 600).nowhere if one.has_runs]
    assert (alone.release, alone.waiting, alone.takes_new, alone.now) == ("signals@1", 1, True, False)
    assert progress(order("worker:w1")).nowhere == [], "once it is drained, only what would be under way is told"


def test_parked_runs_do_not_block_and_are_counted(crew: Crew, ledger: Ledger) -> None:
    crew.drive(start("signals", {"names": ["go"]}))
    start("signals", {"names": ["go"]})
    seen = preview("agent:signals", 60)
    assert (seen.parked, seen.in_flight, seen.in_doubt) == ({"waiting": 1, "queued": 1}, [], 0)
    assert seen.arrivals is not None and seen.arrivals > 0
    assert becomes(order("agent:signals"), "done").in_flight == 0


def test_who_sees_some_agents_is_told_of_those_alone(crew: Crew, fly: Callable[..., UUID], db: None) -> None:
    user = User.objects.create(username="nina")
    set_scope("nina", ["keyed"], actor="test")
    fly()
    drain, other = order("all"), order("agent:chain")
    seen = progress(drain, user)
    assert (seen.in_flight, seen.began_with, seen.at_checkpoint) == ([], None, None)
    assert list(drains_seen(user)) == [drain]
    with pytest.raises(DrainNotFound):
        find_drain(other.pk, user)
    assert [line.drain for line in conditions(user)] == [drain]
    assert conditions(user)[0].remaining == 0
    assert [line.remaining for line in conditions()] == [1, 1]


def test_five_hundred_in_flight_are_told_by_the_index_and_in_a_moment(crew: Crew) -> None:
    worker = crew.hire()
    for _ in range(500):
        start("keyed", {})
    Run.objects.update(session_id=worker.session.id, status="running", epoch=F("epoch") + 1)
    reach = reach_of("all")
    began = time.monotonic()
    found = in_flight(reach)
    assert len(found) == 500 and time.monotonic() - began < 5
    with connection.cursor() as cursor:
        cursor.execute("SET enable_seqscan = off")
        cursor.execute("EXPLAIN " + str(held_runs(reach).values("id").query).replace(
            str(worker.session.id), f"'{worker.session.id}'"))  # fmt: skip
        plan = "\n".join(row[0] for row in cursor.fetchall())
        cursor.execute("RESET enable_seqscan")
    assert "runs_run_by_session" in plan, plan
