"""Many runs moved at once: counted by real judgements first, then moved one at a time; stopped, nothing more is."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from journal import crash
from recovery import bulk_pins, replays
from recovery.bulk import carry_out_bulk
from recovery.models import Replay
from recovery.replay_work import carry_out
from runs.bulk import VERBS, forecast, order_bulk, progress_of, stop_bulk, verdicts_of
from runs.commands import note_run, signal_run
from runs.errors import BulkCountChanged, BulkEmpty, BulkTarget
from runs.models import AuditRecord, BulkAct, Release, Run
from runs.query_meaning import Reader
from runs.sdk import Agent, Call, Finish, RunView, WaitFor, flow
from tests.rig.crew import CrashHere, Crew, journal, start
from tests.rig.ledger import wait_until
from tests.rig.versions import judges_at_once, serve_also, serving
from tests.runs.test_pin import ACTED, Moves, acts

QUERY = "release:varied@1 status:open"


def varied(version: str, word: str, waits_for: str = "go") -> Agent:
    """Of input "fork" version 2 decides otherwise than version 1."""
    act = acts(word)

    @flow(name="varied", version=version, tools=[act])
    def varied(run: RunView) -> Moves:
        yield WaitFor(waits_for if run.input == "fork" else "go")
        return (yield Call(act))

    return serve_also(varied)


@pytest.fixture
def desk(crew: Crew, monkeypatch: pytest.MonkeyPatch) -> Crew:
    """It serves varied@1 and @2 and judges at once what is ordered."""
    ACTED.clear()
    crew.standing = crew.hire()
    judges_at_once(crew.standing, monkeypatch)
    serving(crew.standing, varied("1", "old"), varied("2", "new", "something else"))
    return crew


def runs_of(desk: Crew, *inputs: str) -> list[UUID]:
    found = [start("varied", given, release="1") for given in inputs]
    for run_id in found:
        desk.advance(run_id)
    return found


def order(verb: str, query: str = QUERY, to: str = "2", **more: Any) -> BulkAct:
    release = Release.objects.get(agent="varied", version=to)
    given: dict[str, Any] = {"reason": "v1 is wrong", "actor": "olga", "reader": Reader(), "release": release} | more
    return order_bulk(verb=verb, query=query, **given)


def carry(act: BulkAct) -> BulkAct:
    wait_until(
        lambda: not carry_out_bulk(lambda: False) and not BulkAct.objects.filter(pk=act.pk, ended_at=None), "it ends"
    )
    act.refresh_from_db()
    return act


def said(act: BulkAct) -> dict[UUID, tuple[str | None, str]]:
    return {item.run_id: (item.outcome, item.said) for item in act.items.all()}


def test_judged_first_nothing_is_written_and_then_the_compatible_ones_are_moved(desk: Crew) -> None:
    one, other, fork = runs_of(desk, "a", "b", "fork")
    before = Run.objects.order_by("id").values()
    told = list(before)
    judge = carry(order("judge"))
    counts = verdicts_of(judge)
    assert (counts.compatible, counts.fork_needed, counts.refused, counts.unjudged, counts.left) == (2, 1, 0, 0, 0)
    assert said(judge)[fork][1].startswith("Fork needed: entry 3")
    assert list(Run.objects.order_by("id").values()) == told

    move = carry(order("pin", judged=judge))
    assert {run: outcome for run, (outcome, _) in said(move).items()} == {one: "done", other: "done"}
    assert Replay.objects.count() == 3, "what was judged and still holds is not judged again"
    assert sorted(AuditRecord.objects.filter(act="run.pin").values_list("run", flat=True)) == sorted([one, other])
    for run_id in (one, other):
        signal_run(run_id=run_id, name="go", actor="olga")
        assert desk.drive(run_id).status == "done"
    assert ACTED == ["new", "new"] and "PIN" not in journal(fork)
    assert AuditRecord.objects.get(act="bulk.pin").detail["release"] == "varied@2"


def test_ordered_at_once_each_is_judged_before_it_is_moved(desk: Crew) -> None:
    one, fork = runs_of(desk, "a", "fork")
    move = carry(order("pin"))
    assert said(move)[one] == ("done", "") and said(move)[fork][0] == "skipped"
    assert said(move)[fork][1].startswith("Fork needed: entry 3")


def test_a_journal_that_went_on_is_judged_again_for_the_move(desk: Crew) -> None:
    (run_id,) = runs_of(desk, "a")
    judge = carry(order("judge"))
    note_run(run_id=run_id, text="seen", actor="olga")
    move = carry(order("pin", judged=judge))
    assert said(move)[run_id] == ("done", "") and Replay.objects.count() == 2


def test_a_journal_that_goes_on_and_on_is_given_up(desk: Crew, monkeypatch: pytest.MonkeyPatch) -> None:
    (run_id,) = runs_of(desk, "a")
    worker = desk.standing
    assert worker is not None

    def judge_late(replay_id: int, release_id: str) -> None:
        carry_out(worker, replay_id)
        note_run(run_id=run_id, text="seen", actor="olga")

    monkeypatch.setattr(replays, "send", judge_late)
    move = carry(order("pin"))
    assert said(move)[run_id][0] == "skipped" and "went on each time" in said(move)[run_id][1]
    assert Replay.objects.count() == 3


def test_workers_judge_a_few_at_a_time_and_a_stop_is_the_end(desk: Crew, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = runs_of(desk, *"abcdef")
    sent: list[int] = []
    monkeypatch.setattr(replays, "send", lambda replay_id, release_id: sent.append(replay_id))
    monkeypatch.setattr(bulk_pins, "AT_ONCE", 2)
    move = order("pin")
    for _ in range(3):
        carry_out_bulk(lambda: False)
    assert len(sent) == 2
    assert desk.standing is not None
    carry_out(desk.standing, sent[0])
    carry_out_bulk(lambda: False)
    assert len(sent) == 3 and progress_of(move).done == 1
    stop_bulk(act=move, actor="max")
    for replay_id in sent[1:]:
        carry_out(desk.standing, replay_id)
    carry_out_bulk(lambda: False)
    assert progress_of(move).done == 1 and progress_of(move).left == 5
    assert sum("PIN" in journal(run_id) for run_id in runs) == 1


def test_a_sweeper_that_dies_after_a_move_has_moved_nothing(desk: Crew) -> None:
    (run_id,) = runs_of(desk, "a")
    move = order("pin")
    carry_out_bulk(lambda: False)

    def die(point: str) -> None:
        if point == "bulk-after-command":
            raise CrashHere

    crash.hook = die
    with pytest.raises(CrashHere):
        carry_out_bulk(lambda: False)
    crash.hook = None
    assert "PIN" not in journal(run_id)
    carry(move)
    assert journal(run_id).count("PIN") == 1


def test_while_nobody_serves_the_release_the_rest_waits(desk: Crew) -> None:
    (run_id,) = runs_of(desk, "a")
    worker = desk.standing
    assert worker is not None
    move = order("pin")
    desk.lose(worker)
    for _ in range(3):
        assert not carry_out_bulk(lambda: False)
    assert said(move) == {run_id: (None, "")}


def test_what_it_is_for_and_what_it_needs(desk: Crew) -> None:
    runs_of(desk, "a", "b")
    serve_also(Agent("other", "1", (), lambda view: Finish()))
    start("other")
    release = Release.objects.get(agent="varied", version="2")
    told = forecast(VERBS["pin"], "", Reader(), release)
    assert told.acts == 2 and [why for count in told.counts for _, why in count.skips] == [
        "it has ended, is of another agent, or is pinned to that release already"
    ]
    with pytest.raises(BulkTarget, match="name the release"):
        order("pin", release=None)
    with pytest.raises(BulkTarget, match="for a move alone"):
        order("hold")
    with pytest.raises(BulkTarget, match="has not judged"):
        order("pin", judged=order("pin"))
    with pytest.raises(BulkCountChanged):
        order("pin", expected=1)
    with pytest.raises(BulkEmpty):
        order("pin", query="release:varied@2")


def test_what_is_refused_without_a_judgement_is_told(desk: Crew) -> None:
    (run_id,) = runs_of(desk, "a")
    move = order("pin")
    assert desk.standing is not None
    Run.objects.filter(id=run_id).update(session=desk.standing.session.id)
    carry(move)
    assert said(move)[run_id][0] == "skipped" and "A worker is executing this run" in said(move)[run_id][1]
    Run.objects.filter(id=run_id).update(session=None)
