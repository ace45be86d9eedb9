"""Limits of tools and agents: never more than so many at once, in line by priority and time; no crash leaks a place."""

import threading
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import psycopg
import pytest

from journal import crash
from recovery.sweep import Sweep
from runs.approvals import decide_approval
from runs.commands import cancel_run, hold_run
from runs.engine.permits import DatabasePermits, wake
from runs.engine.worker import Worker
from runs.models import Permit, Run
from runs.queries import entries_of
from runs.registry import agents, announce
from runs.sdk import Limit, ToolContext, tool
from tests.rig.crew import CrashHere, Crew, journal, start, state
from tests.rig.ledger import Ledger, wait_until
from tests.rig.robot import APPROVERS


@pytest.fixture
def crew(crew: Crew, settings: Any) -> Crew:
    settings.HOLDFAST_AGENTS = ("tests.runs.limited",)
    agents.cache_clear()
    announce()
    return crew


@pytest.fixture
def sweep(crew: Crew) -> Iterator[Sweep]:
    sweep = Sweep(crew.dsn, lease=0.0, every=0.05, dispatch=crew.take)
    yield sweep
    sweep.close()


def drive_woken(crew: Crew, run_id: UUID) -> Run:
    """As whoever gave it the permit would have woken it."""
    with psycopg.connect(crew.dsn, autocommit=True) as conn:
        wake(conn, [run_id], crew.take)
    return crew.drive(run_id)


def take_permits(crew: Crew, scope: str, count: int, key: str = "") -> None:
    """So many permits go to runs of their own, which never use them."""
    with psycopg.connect(crew.dsn, autocommit=True) as conn:
        conn.execute("INSERT INTO runs_throttle (scope, key) VALUES (%s, %s) ON CONFLICT DO NOTHING", (scope, key))
        for step in range(1, count + 1):
            conn.execute(
                "INSERT INTO runs_permit (run_id, step, attempt, scope, key, at_once, granted_at, taken)"
                " VALUES ('00000000-0000-0000-0000-000000000001', %s, 1, %s, %s, %s, now(), true)",
                (step, scope, key, count),
            )


def put_in_flight(crew: Crew, runs: list[UUID]) -> None:
    worker = crew.standing = crew.standing or crew.hire()
    Run.objects.filter(id__in=runs).update(status="running", session_id=worker.session.id, wake_at=None)


def give_back(crew: Crew, step: int) -> list[UUID]:
    with psycopg.connect(crew.dsn, autocommit=True) as conn:
        given = conn.execute("SELECT runs_free_v1('00000000-0000-0000-0000-000000000001', ARRAY[%s])", (step,))
        return [run_id for (run_id,) in given.fetchall()]


def test_a_limited_call_has_an_intent_first_and_an_attempt_when_it_may_be_sent(crew: Crew, ledger: Ledger) -> None:
    run_id = start("two", {"amount_cents": 5})
    assert crew.drive(run_id).status == "done"
    assert journal(run_id) == ["START", "PLAN", "TOOL_CALL:1", "ATTEMPT:1", "OBS:1", "DONE"]
    call = entries_of(run_id)[2].body
    assert call["gate"] == "limit" and call["summary"] == "Charge 5 cents"
    assert not Permit.objects.exists()


def test_a_call_over_the_limit_waits_without_a_worker_and_says_its_place(crew: Crew, ledger: Ledger) -> None:
    take_permits(crew, "tool:charge_two", 2)
    first, second = (crew.advance(start("two", {"amount_cents": n})) for n in (1, 2))
    assert (first.status, first.session_id, first.wake_at) == ("waiting", None, None)
    assert first.reason == "charge_two is limited to 2 at once; 1st in line"
    assert second.reason == "charge_two is limited to 2 at once; 2nd in line"
    assert ledger.acted(f"{first.id}:1") == 0 and "ATTEMPT:1" not in journal(first.id)


def test_who_is_first_in_line_goes_when_one_lets_go(crew: Crew, ledger: Ledger) -> None:
    take_permits(crew, "tool:charge_two", 2)
    first, second = start("two", {}), start("two", {})
    crew.advance(first), crew.advance(second)
    assert give_back(crew, 1) == [first]
    assert drive_woken(crew, first).status == "done"
    assert Run.objects.get(id=second).status == "waiting" and Run.objects.get(id=second).wake_at is not None
    assert crew.messages[-1][0] == second, "the first gave its permit to the second"
    assert crew.drive(second).status == "done"


def test_a_higher_priority_stands_before_who_came_earlier(crew: Crew, ledger: Ledger) -> None:
    take_permits(crew, "tool:charge_two", 2)
    early, urgent = start("two", {}), start("two", {}, priority=9)
    crew.advance(early)
    assert crew.advance(urgent).reason.endswith("1st in line")
    assert crew.advance(early).reason == Run.objects.get(id=early).reason
    assert give_back(crew, 1) == [urgent]


def test_each_value_of_the_key_has_its_own_line(crew: Crew, ledger: Ledger) -> None:
    take_permits(crew, "tool:refund_customer", 1, key="c-1")
    waits = crew.advance(start("by-customer", {"customer_id": "c-1"}))
    assert waits.reason == "refund_customer is limited to 1 at once for customer_id c-1; 1st in line"
    assert crew.advance(start("by-customer", {"customer_id": "c-2"})).status == "done"
    assert crew.advance(start("by-customer", {})).reason.endswith("2nd in line"), "a default is a value too"


def test_calls_side_by_side_share_the_limit_and_all_are_made(crew: Crew, ledger: Ledger) -> None:
    run_id = start("several", {"charges": 5})
    assert crew.drive(run_id).status == "done"
    assert entries_of(run_id)[-1].body["result"] == 6
    assert not Permit.objects.exists()


def most_of(crew: Crew, runs: list[UUID], counted: str) -> int:
    """What this query counted at most while three workers ask for all of these runs until they are done."""
    release_id = Run.objects.get(id=runs[0]).release_id
    over = threading.Event()

    def work(worker: Worker) -> None:
        while not over.is_set():
            for run_id in runs:
                worker.advance(run_id, release_id)

    threads = [threading.Thread(target=work, args=(crew.hire(),)) for _ in range(3)]
    for thread in threads:
        thread.start()
    found = [0]
    try:
        with psycopg.connect(crew.dsn, autocommit=True) as conn:

            def all_done() -> bool:
                found.extend(count for (count,) in conn.execute(counted).fetchall())  # type: ignore[arg-type]
                row = conn.execute("SELECT count(*) FROM runs_run WHERE status = 'done'").fetchone()
                return row == (len(runs),)

            wait_until(all_done, "all are done")
    finally:
        over.set()
        for thread in threads:
            thread.join(60)
    return max(found)


def test_never_more_calls_than_the_limit_are_under_way_whatever_workers_do(crew: Crew, ledger: Ledger) -> None:
    runs = [start("two", {"amount_cents": n, "seconds": 0.05}) for n in range(1, 9)]
    assert most_of(crew, runs, "SELECT count(*) FROM runs_permit WHERE granted_at IS NOT NULL") == 2
    assert all(ledger.acted(f"{run_id}:1") == 1 for run_id in runs)
    assert not Permit.objects.exists()


def test_never_more_runs_than_the_limit_are_in_flight_whatever_workers_do(crew: Crew) -> None:
    runs = [start("in-flight") for _ in range(8)]
    assert most_of(crew, runs, "SELECT count(*) FROM runs_run WHERE status = 'running'") == 2


def test_a_run_that_waits_for_a_person_keeps_no_permit(crew: Crew, ledger: Ledger) -> None:
    ledger.fault("mail", "drop", times=1)
    doubtful = start("one-letter")
    assert crew.drive(doubtful).status == "needs_reconciliation"
    assert not Permit.objects.exists()
    assert crew.drive(start("one-letter")).status == "done"


def test_an_approval_holds_no_place_and_is_limited_when_it_is_granted(crew: Crew, ledger: Ledger) -> None:
    run_id = start("one-approved")
    assert crew.drive(run_id).status == "awaiting_approval"
    assert not Permit.objects.exists()
    take_permits(crew, "tool:approved_one", 1)
    slot = state(run_id).slots[1]
    decide_approval(
        run_id=run_id, seq=slot.seq, verdict="approve", digest=slot.digest, note="", actor="ada", groups=APPROVERS
    )
    assert crew.advance(run_id).reason == "approved_one is limited to 1 at once; 1st in line"
    assert give_back(crew, 1) == [run_id]
    assert drive_woken(crew, run_id).status == "done"


def test_a_place_in_line_ends_with_a_cancel_and_with_a_hold(crew: Crew, ledger: Ledger, sweep: Sweep) -> None:
    take_permits(crew, "tool:charge_two", 2)
    cancelled, held, third = start("two"), start("two"), start("two")
    for run_id in (cancelled, held, third):
        crew.advance(run_id)
    cancel_run(run_id=cancelled, reason="not needed", actor="olga")
    assert crew.drive(cancelled).status == "cancelled"
    hold_run(run_id=held, reason="look", actor="olga")
    wait_until(lambda: sweep.once() or not Permit.objects.filter(run_id=held).exists(), "the sweep sees it")
    assert give_back(crew, 1) == [third]


POINTS = ["before-permit", "after-permit", "before-attempt", "after-attempt", "before-effect", "after-effect",
          "before-outcome", "after-outcome", "before-free", "after-free"]  # fmt: skip


@pytest.mark.parametrize("point", POINTS)
def test_no_crash_leaks_a_permit_or_sends_twice(
    crew: Crew, ledger: Ledger, sweep: Sweep, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    run_id, waits = start("by-customer"), start("by-customer")
    worker = crew.hire()
    release_id = Run.objects.get(id=run_id).release_id
    died = threading.Event()

    def die(name: str) -> None:
        if name == point and not died.is_set():
            died.set()
            raise CrashHere

    monkeypatch.setattr(crash, "hook", die)
    with pytest.raises(CrashHere):
        worker.advance(run_id, release_id)
    monkeypatch.setattr(crash, "hook", None)
    assert Permit.objects.filter(granted_at__isnull=False).count() <= 1
    crew.advance(waits)
    crew.lose(worker)

    def both_end() -> bool:
        sweep.once()
        return [crew.advance(one).status for one in (run_id, waits)] == ["done", "done"]

    wait_until(both_end, "both end")
    assert [ledger.acted(f"{one}:1") for one in (run_id, waits)] == [1, 1]
    wait_until(lambda: sweep.once() or not Permit.objects.exists(), "every permit is given back")


def test_a_long_line_wakes_nobody_but_its_first(crew: Crew, ledger: Ledger, sweep: Sweep) -> None:
    take_permits(crew, "tool:charge_two", 2)
    line = [start("two") for _ in range(60)]
    for run_id in line:
        crew.advance(run_id)
    crew.messages.clear()
    for _ in range(20):
        sweep.once()
    assert not crew.messages and set(Run.objects.values_list("epoch", flat=True)) == {1}
    assert give_back(crew, 1) == line[:1]
    wait_until(lambda: sweep.once() or crew.messages, "the sweep tells the first")
    for _ in range(20):
        sweep.once()
    assert {run_id for run_id, _ in crew.messages} == {line[0]}


def test_a_permit_that_nobody_heard_of_is_told_by_the_sweep(crew: Crew, ledger: Ledger, sweep: Sweep) -> None:
    take_permits(crew, "tool:charge_two", 2)
    run_id = start("two")
    crew.advance(run_id)
    assert give_back(crew, 1) == [run_id], "who gave it back died before it could wake the run"
    assert Run.objects.get(id=run_id).wake_at is None
    wait_until(lambda: sweep.once() or Run.objects.get(id=run_id).wake_at is not None, "the sweep wakes it")
    assert drive_woken(crew, run_id).status == "done"


def test_an_agents_limit_keeps_runs_queued_and_sends_the_next_when_one_is_let_go(crew: Crew, sweep: Sweep) -> None:
    runs = [start("in-flight") for _ in range(4)]
    release_id = Run.objects.get(id=runs[0]).release_id
    put_in_flight(crew, runs[:2])
    for run_id in runs[2:]:
        assert crew.advance(run_id).reason == "in-flight is limited to 2 at once"
        assert Run.objects.get(id=run_id).status == "queued"
    crew.messages.clear()
    sweep.once()
    assert not {run_id for run_id, _ in crew.messages} & set(runs[2:]), "no message goes to who has no place"
    assert crew.standing is not None
    crew.standing.advance(runs[0], release_id)
    assert Run.objects.get(id=runs[0]).status in ("done", "waiting", "queued")
    assert crew.messages[-1][0] == runs[2], "the one that came first is sent at once"


def test_a_sleeping_run_holds_no_place_and_a_cancelled_one_needs_none(crew: Crew) -> None:
    asleep = [start("in-flight", {"sleep": 3600}) for _ in range(2)]
    for run_id in asleep:
        assert crew.advance(run_id).status == "waiting"
    assert crew.drive(start("in-flight")).status == "done"
    put_in_flight(crew, asleep)
    over = start("in-flight")
    assert crew.advance(over).status == "queued"
    cancel_run(run_id=over, reason="enough", actor="olga")
    assert crew.advance(over).status == "cancelled"


def test_a_limit_names_an_argument_of_its_tool() -> None:
    with pytest.raises(ValueError, match="limit= names the argument 'customer'; it has order_id"):

        @tool(effect="read", limit="customer")
        def one(ctx: ToolContext, order_id: str) -> None: ...

    with pytest.raises(ValueError, match="whole number"):
        Limit(0)


def test_an_orphan_keeps_its_place_until_it_is_taken_over(
    crew: Crew, monkeypatch: pytest.MonkeyPatch, sweep: Sweep
) -> None:
    dies, other, waits = start("in-flight"), start("in-flight"), start("in-flight")
    release_id = Run.objects.get(id=dies).release_id
    worker = crew.hire()

    def die(name: str) -> None:
        if name == "after-intent":
            raise CrashHere

    monkeypatch.setattr(crash, "hook", die)
    with pytest.raises(CrashHere):
        worker.advance(dies, release_id)
    monkeypatch.setattr(crash, "hook", None)
    crew.lose(worker)
    put_in_flight(crew, [other])
    assert crew.advance(waits).status == "queued", "the dead worker's run may still be acting"
    assert crew.drive(dies).status == "done", "it is never refused its own place"
    assert crew.messages[-1][0] == waits
    assert crew.drive(waits).status == "done"


def test_a_permit_that_cannot_be_given_up_never_harms_the_run(
    crew: Crew, ledger: Ledger, sweep: Sweep, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = crew.standing = crew.hire()

    def away(*_: Any) -> None:
        raise psycopg.OperationalError("away")

    monkeypatch.setattr(DatabasePermits, "free", away)
    run_id = start("two")
    assert crew.drive(run_id, worker).status == "done"
    assert Permit.objects.filter(run_id=run_id).exists()
    sweep.once()
    assert not Permit.objects.exists()
