"""Bulk acts: counted, ordered once, carried out a run at a time, also when sweepers die or meet."""

from __future__ import annotations

import signal
import threading
from typing import Any
from uuid import UUID

import pytest
from django.db import connection, transaction
from django.utils import timezone

from journal import crash
from journal.append import new_run_id
from journal.encoding import encode
from recovery.bulk import COMMANDS, REFUSALS, carry_out_bulk
from recovery.bulk_pins import VERBS as MOVES
from runs.bulk import (
    MOST,
    VERBS,
    find_bulk,
    forecast,
    items_of,
    order_bulk,
    progress_of,
    stop_bulk,
    verb_named,
)
from runs.bulk_work import carry_out, work_on_one
from runs.commands import hold_run
from runs.errors import (
    BulkCountChanged,
    BulkEmpty,
    BulkEnded,
    BulkNotFound,
    BulkTooLarge,
    BulkVerbUnknown,
    QueryInvalid,
    ReasonMissing,
)
from runs.models import AgentScope, AuditRecord, BulkAct, BulkItem, Run
from runs.queries import entries_of
from runs.query_meaning import Reader
from tests.rig.crew import CrashHere, Crew, journal, start
from tests.rig.fleet import Fleet
from tests.rig.fleet import fleet as fleet
from tests.rig.ledger import Ledger, wait_until


def order(verb: str, query: str = "", **more: Any) -> BulkAct:
    given: dict[str, Any] = {"reason": "the shop is closed", "actor": "olga", "reader": Reader()} | more
    return order_bulk(verb=verb, query=query, **given)


def carry(act: BulkAct) -> dict[str, int]:
    """To its end, by a sweep's step; how many items had which outcome."""
    wait_until(
        lambda: not carry_out_bulk(lambda: False) and not BulkAct.objects.filter(pk=act.pk, ended_at=None), "it ends"
    )
    act.refresh_from_db()
    progress = progress_of(act)
    return {"done": progress.done, "skipped": progress.skipped, "failed": progress.failed, "left": progress.left}


def said(act: BulkAct) -> dict[UUID, tuple[str | None, str]]:
    return {item.run_id: (item.outcome, item.said) for item in act.items.all()}


# -- counting and ordering --------------------------------------------------------------------------------------------


def test_the_count_says_by_status_what_it_would_do_and_what_it_would_skip(crew: Crew, ledger: Ledger) -> None:
    queued, over = start("keyed", {}), start("keyed", {})
    crew.drive(over)
    ledger.fault("mail", "drop", times=1)
    doubt = start("unkeyed", {})
    assert crew.drive(doubt).status == "needs_reconciliation"
    told = forecast(VERBS["cancel"], "", Reader())
    counts = {count.status: (count.acts, [(n, why[:20]) for n, why in count.skips]) for count in told.counts}
    assert counts == {
        "queued": (1, []), "done": (0, [(1, "it has ended")]),
        "needs_reconciliation": (0, [(1, "an intent of it has ")]),
    }  # fmt: skip
    assert (told.acts, told.skips) == (1, 2)
    asked = forecast(VERBS["probe"], "", Reader())
    assert {count.status: count.acts for count in asked.counts if count.acts} == {"needs_reconciliation": 1}
    assert BulkAct.objects.count() == 0 and journal(queued) == ["START"]


def test_an_order_takes_in_what_matches_now_and_no_run_that_comes_later(crew: Crew) -> None:
    first = [start("keyed", {}) for _ in range(3)]
    act = order("cancel", "status:queued", expected=3)
    late = start("keyed", {})
    assert carry(act) == {"done": 3, "skipped": 0, "failed": 0, "left": 0}
    assert {journal(run_id)[-1] for run_id in first} == {"CONTROL"} and journal(late) == ["START"]
    record = AuditRecord.objects.get(act="bulk.cancel")
    assert (record.actor, record.subject, record.detail["runs"]) == ("olga", f"bulk {act.pk}", 3)
    assert AuditRecord.objects.filter(act="run.cancel", actor="olga").count() == 3


def test_orders_that_make_no_sense_are_refused_and_nothing_is_written(crew: Crew) -> None:
    start("keyed", {})
    refused: list[tuple[type[Exception], str, str, dict[str, Any]]] = [
        (BulkVerbUnknown, "explode", "", {}), (ReasonMissing, "hold", "", {"reason": " "}),
        (QueryInvalid, "hold", "status:lost", {}), (BulkEmpty, "resume", "", {}),
        (BulkEmpty, "hold", "agent:nobody", {}), (BulkCountChanged, "hold", "", {"expected": 0}),
    ]  # fmt: skip
    for error, verb, query, more in refused:
        with pytest.raises(error):
            order(verb, query, **more)
    assert BulkAct.objects.count() == 0 and BulkItem.objects.count() == 0


def test_too_many_runs_are_refused(crew: Crew, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(3):
        start("keyed", {})
    monkeypatch.setattr("runs.bulk.MOST", 2)
    with pytest.raises(BulkTooLarge):
        order("hold")
    assert BulkAct.objects.count() == 0 and MOST == 100_000


def test_the_same_order_sent_twice_is_one_act(crew: Crew) -> None:
    start("keyed", {})
    first = order("hold", request_id="a click")
    carry(first)
    assert order("hold", request_id="a click").pk == first.pk
    assert BulkAct.objects.count() == 1


def test_nobody_orders_anything_outside_of_their_agents(crew: Crew, django_user_model: Any) -> None:
    mine, other = start("keyed", {}), start("sleep", {"seconds": 3600})
    user = django_user_model.objects.create(username="scoped")
    AgentScope.objects.create(user=user, agent="keyed")
    act = order("cancel", "", actor="scoped", reader=Reader(user))
    carry(act)
    assert journal(mine)[-1] == "CONTROL" and journal(other) == ["START"]
    theirs = order("hold", "agent:sleep")
    assert find_bulk(act.pk, user, "scoped").pk == act.pk
    with pytest.raises(BulkNotFound):
        find_bulk(theirs.pk, user, "scoped")


# -- carrying out -----------------------------------------------------------------------------------------------------


def test_each_verb_does_to_each_run_what_its_command_does(crew: Crew, ledger: Ledger) -> None:
    runs = [start("keyed", {}) for _ in range(2)]
    assert carry(order("hold"))["done"] == 2
    assert {Run.objects.get(id=run_id).status for run_id in runs} == {"held"}
    assert carry(order("resume", "status:held"))["done"] == 2
    for run_id in runs:
        assert crew.drive(run_id).status == "done"
        assert journal(run_id)[:3] == ["START", "CONTROL", "CONTROL"]
        assert ledger.acted(f"{run_id}:1") == 1


def test_a_run_that_changed_before_its_turn_is_judged_again(crew: Crew, ledger: Ledger) -> None:
    runs = [start("keyed", {}) for _ in range(2)]
    act = order("cancel")
    crew.drive(runs[0])
    assert carry(act) == {"done": 1, "skipped": 1, "failed": 0, "left": 0}
    assert said(act)[runs[0]][0] == "skipped" and "has ended" in said(act)[runs[0]][1]


def test_a_run_with_a_pending_intent_is_skipped_and_probe_asks_its_tool(crew: Crew, ledger: Ledger) -> None:
    ledger.fault("mail", "drop", times=1)
    silent = start("unkeyed", {})
    assert crew.drive(silent).status == "needs_reconciliation"
    act = order("probe", "has:intent")
    assert carry(act) == {"done": 0, "skipped": 1, "failed": 0, "left": 0}
    assert "cannot be asked" in said(act)[silent][1] or "probe" in said(act)[silent][1].lower()
    start("keyed", {})
    act = order("cancel", "status:open")
    assert carry(act) == {"done": 1, "skipped": 1, "failed": 0, "left": 0}
    assert "no result" in said(act)[silent][1]
    assert "CONTROL" not in journal(silent)


def test_probe_asks_about_each_intent_in_doubt_and_nothing_is_sent(
    crew: Crew, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = orphan(crew, monkeypatch, "keyed-probe", "after-effect")
    record = {"seq": 3, "step": 1, "tool": "refund", "state": "in_doubt", "since": timezone.now().isoformat()}
    Run.objects.filter(id=run_id).update(status="needs_reconciliation", session=None, intents=[record])
    act = order("probe", "has:intent")
    assert carry(act) == {"done": 1, "skipped": 0, "failed": 0, "left": 0}
    asked = [e for e in entries_of(run_id) if e.kind == "RECONCILE"]
    assert [(e.actor, e.body["verdict"], e.body["evidence"]) for e in asked] == [
        ("olga", "probe", "the shop is closed")
    ]
    assert crew.drive(run_id).status == "done"
    assert (ledger.calls(f"{run_id}:1"), ledger.acted(f"{run_id}:1")) == (1, 1)


def orphan(crew: Crew, monkeypatch: pytest.MonkeyPatch, agent: str, at: str) -> UUID:
    """A run whose worker died under it at this point."""

    def die(point: str) -> None:
        if point == at:
            raise CrashHere

    run_id, worker = start(agent, {}), crew.hire()
    monkeypatch.setattr(crash, "hook", die)
    with pytest.raises(CrashHere):
        worker.advance(run_id, Run.objects.get(id=run_id).release_id)
    monkeypatch.setattr(crash, "hook", None)
    crew.lose(worker)
    return run_id


def test_an_orphan_in_the_middle_of_a_call_counts_as_pending(crew: Crew, monkeypatch: pytest.MonkeyPatch) -> None:
    run_id = orphan(crew, monkeypatch, "keyed", "after-intent")
    act = order("cancel")
    assert carry(act)["skipped"] == 1 and "no result" in said(act)[run_id][1]


def test_a_stateless_run_is_cancelled_and_says_that_it_cannot_be_held(crew: Crew) -> None:
    like = Run.objects.get(id=start("keyed", {}))
    row = Run.objects.create(id=new_run_id(), agent=like.agent, release=like.release, input=encode({}))
    held = order("hold", str(row.id))
    assert carry(held)["skipped"] == 1 and "no journal" in said(held)[row.id][1]
    assert carry(order("cancel", str(row.id)))["done"] == 1
    assert Run.objects.get(id=row.id).status == "cancelled"


def test_what_a_command_did_not_foresee_fails_one_item_and_not_the_others(crew: Crew) -> None:
    runs = sorted(start("keyed", {}) for _ in range(3))

    def hold(*, run_id: UUID, **given: Any) -> object:
        hold_run(run_id=run_id, **given)
        if run_id == runs[1]:
            raise RuntimeError("a fault in the code")
        return None

    act = order("hold")
    carry_out(COMMANDS | {"hold": hold}, REFUSALS, 60.0, lambda: False)
    assert [said(act)[run_id][0] for run_id in runs] == ["done", "failed", "done"]
    assert said(act)[runs[1]][1] == "RuntimeError: a fault in the code"
    assert journal(runs[1]) == ["START"], "what it had written is undone"


def test_a_run_that_somebody_holds_is_tried_with_the_next_round(crew: Crew) -> None:
    runs = sorted(start("keyed", {}) for _ in range(2))
    act = order("hold")
    with_lock, let_go = threading.Event(), threading.Event()

    def keep() -> None:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SELECT 1 FROM journal_head WHERE run_id = %s FOR UPDATE", [runs[0]])
            with_lock.set()
            let_go.wait(60)
        connection.close()

    thread = threading.Thread(target=keep)
    thread.start()
    assert with_lock.wait(60)
    try:
        assert carry_out_bulk(lambda: False) in (True, False)
        wait_until(lambda: carry_out_bulk(lambda: False) or said(act)[runs[1]][0] == "done", "the other is held")
        assert said(act)[runs[0]][0] is None
    finally:
        let_go.set()
        thread.join(60)
    assert carry(act)["done"] == 2


def test_stopped_it_does_nothing_more_and_what_was_done_stays(crew: Crew) -> None:
    for _ in range(3):
        start("keyed", {})
    act = order("hold")
    assert work_on_one(act.pk, COMMANDS, REFUSALS, set())
    stop_bulk(act=act, actor="max")
    assert not work_on_one(act.pk, COMMANDS, REFUSALS, set())
    assert carry_out_bulk(lambda: False) is False
    act.refresh_from_db()
    assert act.stopped_by == "max" and act.ended_at is not None
    assert (progress_of(act).done, progress_of(act).left) == (1, 2)
    with pytest.raises(BulkEnded):
        stop_bulk(act=act, actor="max")
    assert Run.objects.filter(status="held").count() == 1


def test_items_are_paged_and_filtered_by_outcome(crew: Crew) -> None:
    for _ in range(5):
        start("keyed", {})
    act = order("hold")
    for _ in range(2):
        work_on_one(act.pk, COMMANDS, REFUSALS, set())
    first, after = items_of(act, limit=3)
    rest, end = items_of(act, after=after, limit=3)
    assert len(first) == 3 and len(rest) == 2 and end is None
    assert len({item.run_id for item in first + rest}) == 5
    assert [len(items_of(act, outcome)[0]) for outcome in ("done", "left", "failed")] == [2, 3, 0]


# -- sweepers that die and meet ---------------------------------------------------------------------------------------

POINTS = ("bulk-before-command", "bulk-after-command", "bulk-after-item")


@pytest.mark.slow
@pytest.mark.parametrize("point", POINTS)
def test_a_sweep_killed_in_the_middle_leaves_nothing_half_done_and_nothing_twice(fleet: Fleet, point: str) -> None:
    runs = [start("keyed", {}) for _ in range(12)]
    act = order("hold")
    fleet.sweeper(crash=f"{point}:5").dies(60)
    fleet.sweeper()
    fleet.until(lambda: BulkAct.objects.filter(pk=act.pk, ended_at__isnull=False), "another carries on", 60)
    assert {outcome for outcome, _ in said(act).values()} == {"done"}
    assert {run_id: journal(run_id).count("CONTROL") for run_id in runs} == dict.fromkeys(runs, 1)


@pytest.mark.slow
def test_two_sweeps_at_once_do_each_run_once(fleet: Fleet) -> None:
    runs = [start("keyed", {}) for _ in range(40)]
    act = order("cancel", "", expected=40)
    for _ in range(2):
        fleet.sweeper()
    fleet.until(lambda: BulkAct.objects.filter(pk=act.pk, ended_at__isnull=False), "it ends", 60)
    assert {outcome for outcome, _ in said(act).values()} == {"done"}
    assert {run_id: journal(run_id).count("CONTROL") for run_id in runs} == dict.fromkeys(runs, 1)
    assert all(hand.code is None for hand in fleet.hands)


@pytest.mark.slow
def test_sweepers_killed_again_and_again_come_to_the_end(fleet: Fleet) -> None:
    runs = [start("keyed", {}) for _ in range(30)]
    act = order("hold")
    deaths = 0
    while not BulkAct.objects.filter(pk=act.pk, ended_at__isnull=False):
        before = progress_of(act).left
        hand = fleet.sweeper()
        fleet.until(lambda before=before: progress_of(act).left < before or not progress_of(act).left, "it goes on", 60)
        if deaths < 3:
            hand.send(signal.SIGKILL)
            hand.dies(60)
            deaths += 1
    assert {run_id: journal(run_id).count("CONTROL") for run_id in runs} == dict.fromkeys(runs, 1)


def test_the_verbs_are_those_that_have_a_command() -> None:
    assert {*COMMANDS, *MOVES} == set(VERBS) and verb_named("hold").button == "Hold"
