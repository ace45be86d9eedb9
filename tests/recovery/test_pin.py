"""Re-pin: judged by a worker that serves the release, written only if nothing has happened since, refused in words."""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from threading import Thread
from typing import Any
from uuid import UUID

import pytest
from django.db import connection

from recovery import pins, replays
from recovery.errors import (
    NotJudgedYet,
    OtherAgent,
    PinnedAlready,
    PinOutrun,
    PinRefused,
    RecoveryError,
    ReleaseRetired,
    RunDriven,
)
from recovery.models import Replay
from recovery.pins import judge_pin, repin_run
from recovery.replay_work import carry_out
from runs.commands import answer_ask, cancel_run, hold_run, note_run, resume_run, signal_run
from runs.errors import ReasonMissing, ReleaseNeeded, ReleaseUnserved, RunEnded, StatelessRun, UnknownRelease
from runs.models import AuditRecord, Release, Run, Stage
from runs.queries import entries_of
from runs.sdk import Agent, Ask, Call, Finish, RunView, WaitFor, flow
from runs.stages import retire_release
from tests.rig.crew import Crew, journal, start, state
from tests.rig.ledger import Ledger
from tests.rig.versions import agent_of, judges_at_once, next_version, serve_also
from tests.rig.versions import serving as serve_here
from tests.runs.test_pin import ACTED, Moves, acts, waits_then_acts


@pytest.fixture
def judges(crew: Crew, monkeypatch: pytest.MonkeyPatch) -> Iterator[Crew]:
    """A crew of which one worker judges at once what is ordered."""
    crew.standing = crew.hire()
    judges_at_once(crew.standing, monkeypatch)
    ACTED.clear()
    yield crew


def serving(crew: Crew, *more: Agent) -> None:
    assert crew.standing is not None
    serve_here(crew.standing, *more)


def waiting(judges: Crew) -> UUID:
    """A run of patient@1 that waits for its signal, and a worker that serves patient@2 too."""
    waits_then_acts("1", "old")
    run_id = start("patient", release="1")
    judges.advance(run_id)
    serving(judges, waits_then_acts("2", "new"))
    return run_id


def otherwise(version: str) -> Agent:
    @flow(name="patient", version=version)
    def patient(run: RunView) -> Moves:
        yield WaitFor("something else")

    return serve_also(patient)


def move(run_id: UUID, release: str = "2", reason: str = "v1 is wrong", **more: Any) -> Run:
    return repin_run(run_id=run_id, release=release, reason=reason, actor="olga", **more)


def untouched(run_id: UUID) -> tuple[Any, ...]:
    return journal(run_id), Run.objects.values().get(id=run_id)


def test_a_run_that_decides_the_same_there_is_moved(judges: Crew) -> None:
    run_id = waiting(judges)
    before = Run.objects.get(id=run_id).release_id
    run = move(run_id)
    assert (str(run.release), run.status, run.reason) == ("patient@2", "queued", "pinned to patient@2 by olga")
    entry = entries_of(run_id)[-1]
    assert (entry.kind, entry.actor) == ("PIN", "olga")
    assert entry.body == {
        "release": run.release_id, "from": before, "reason": "v1 is wrong", "verdict": "compatible",
        "code": agent_of(run_id).code_digest, "as_of": entry.seq - 1,
    }  # fmt: skip
    (told,) = AuditRecord.objects.filter(act="run.pin")
    assert (told.actor, told.run, told.reason) == ("olga", run_id, "v1 is wrong")
    signal_run(run_id=run_id, name="go", actor="olga")
    assert judges.drive(run_id).status == "done" and ACTED == ["new"]


def test_a_run_that_would_decide_otherwise_stays_as_it_is(judges: Crew) -> None:
    run_id = waiting(judges)
    serving(judges, otherwise("3"))
    before = untouched(run_id)
    with pytest.raises(PinRefused, match="Fork needed: entry 3") as no:
        move(run_id, "patient@3")
    assert no.value.verdict == "fork needed" and no.value.reasons[0]["seq"] == 3
    assert untouched(run_id) == before and not AuditRecord.objects.filter(act="run.pin").exists()
    assert judge_pin(run_id=run_id, release="3", actor="olga").pk == no.value.replay, "it is not judged twice for that"


def test_a_run_with_a_call_in_doubt_stays_as_it_is(judges: Crew, ledger: Ledger) -> None:
    ledger.fault("mail", "drop", times=1)
    run_id = start("unkeyed", {})
    assert judges.drive(run_id).status == "needs_reconciliation"
    serving(judges, next_version(run_id))
    with pytest.raises(PinRefused, match="in doubt") as no:
        move(run_id)
    assert no.value.verdict == "refused" and "PIN" not in journal(run_id)


def test_what_needs_no_judgement_is_refused_without_one(judges: Crew) -> None:
    run_id = waiting(judges)
    serving(judges, serve_also(Agent("other", "1", (), lambda view: Finish())))
    waits_then_acts("9", "nobody serves it")
    with pytest.raises(ReasonMissing):
        move(run_id, reason=" ")
    with pytest.raises(PinnedAlready):
        move(run_id, "1")
    with pytest.raises(UnknownRelease, match="patient has 9, 2, 1, not 77"):
        move(run_id, "77")
    with pytest.raises(OtherAgent, match="the run is of patient"):
        move(run_id, "other@1")
    with pytest.raises(UnknownRelease, match="patient has 9, 2, 1, not") as unknown:
        move(run_id, Release.objects.get(agent="other").id)
    assert "other" not in str(unknown.value), "a digest tells nobody what it is of"
    with pytest.raises(ReleaseUnserved, match="patient@9"):
        move(run_id, "9")
    Release.objects.filter(agent="patient", version="2").update(stage=Stage.RETIRED)
    with pytest.raises(ReleaseRetired):
        move(run_id)
    Release.objects.filter(agent="patient", version="2").update(stage=Stage.CANDIDATE)
    assert judges.standing is not None
    Run.objects.filter(id=run_id).update(session=judges.standing.session.id)
    with pytest.raises(RunDriven, match="hold it, or drain its release"):
        move(run_id)
    Run.objects.filter(id=run_id).update(session=None)
    cancel_run(run_id=run_id, reason="no more", actor="olga")
    judges.drive(run_id)
    with pytest.raises(RunEnded):
        move(run_id)
    stateless = Agent("brief", "1", (), lambda view: Finish(), durability="stateless")
    serve_also(stateless)
    brief = start("brief")
    serving(judges, next_version(brief))
    with pytest.raises(StatelessRun):
        move(brief)
    assert not Replay.objects.exists()


def test_nobody_judges_it_in_time(judges: Crew, monkeypatch: pytest.MonkeyPatch) -> None:
    run_id = waiting(judges)
    monkeypatch.setattr(replays, "send", lambda *message: True)
    monkeypatch.setattr(pins, "WAIT", 0.05)
    with pytest.raises(NotJudgedYet) as late:
        move(run_id)
    assert "PIN" not in journal(run_id)
    assert judges.standing is not None
    carry_out(judges.standing, late.value.replay)
    assert str(move(run_id).release) == "patient@2", "what was judged meanwhile is used"
    assert Replay.objects.count() == 1


@pytest.fixture
def after_judging(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], Any], int], None]:
    """Something happens between a judgement and the write, so many times."""

    def happens(what: Callable[[], Any], times: int) -> None:
        left, wait_for = iter(range(times)), pins.wait_for

        def then(replay: Replay, seconds: float) -> Replay:
            found = wait_for(replay, seconds)
            if next(left, None) is not None:
                what()
            return found

        monkeypatch.setattr(pins, "wait_for", then)

    return happens


Happens = Callable[[Callable[[], Any], int], None]


def test_a_journal_that_went_on_is_judged_again(judges: Crew, after_judging: Happens) -> None:
    run_id = waiting(judges)
    after_judging(lambda: note_run(run_id=run_id, text="seen", actor="olga"), 2)
    move(run_id)
    pin = entries_of(run_id)[-1]
    assert (pin.kind, pin.body["as_of"]) == ("PIN", pin.seq - 1) and Replay.objects.count() == 3


def test_a_journal_that_goes_on_and_on_is_given_up_after_three_times(judges: Crew, after_judging: Happens) -> None:
    run_id = waiting(judges)
    after_judging(lambda: note_run(run_id=run_id, text="seen", actor="olga"), 3)
    with pytest.raises(PinOutrun, match="3 times"):
        move(run_id)
    assert "PIN" not in journal(run_id) and Replay.objects.count() == 3


def test_a_judgement_that_was_looked_at_serves_only_while_it_holds(judges: Crew) -> None:
    run_id = waiting(judges)
    seen = judge_pin(run_id=run_id, release="2", actor="olga")
    note_run(run_id=run_id, text="seen", actor="olga")
    move(run_id, judged=seen.pk)
    assert Replay.objects.count() == 2 and entries_of(run_id)[-1].body["as_of"] == seen.as_of_seq + 1  # type: ignore[operator]


def test_a_judgement_of_another_run_serves_nothing(judges: Crew) -> None:
    run_id, other = waiting(judges), waiting(judges)
    seen = judge_pin(run_id=other, release="2", actor="olga")
    move(run_id, judged=seen.pk)
    assert Replay.objects.filter(run=run_id).count() == 1


@pytest.mark.parametrize(
    ("meanwhile", "refusal"), [("retired", ReleaseRetired), ("claimed", RunDriven), ("unserved", ReleaseUnserved)]
)
def test_what_changes_while_it_is_judged_refuses_it(
    judges: Crew, after_judging: Happens, meanwhile: str, refusal: type[RecoveryError]
) -> None:
    run_id = waiting(judges)
    worker = judges.standing
    assert worker is not None

    def change() -> None:
        if meanwhile == "retired":
            Release.objects.filter(agent="patient", version="2").update(stage=Stage.RETIRED)
        elif meanwhile == "claimed":
            Run.objects.filter(id=run_id).update(session=worker.session.id)
        else:
            worker.session.drain(worker.connections)

    after_judging(change, 1)
    with pytest.raises(refusal):
        move(run_id)
    Run.objects.filter(id=run_id).update(session=None)
    assert "PIN" not in journal(run_id)


def test_a_run_that_is_cancelled_while_it_is_judged_ends_as_cancelled(judges: Crew, after_judging: Happens) -> None:
    run_id = waiting(judges)
    after_judging(lambda: cancel_run(run_id=run_id, reason="no more", actor="max"), 1)
    move(run_id)
    assert judges.drive(run_id).status == "cancelled" and journal(run_id)[-1] == "DONE"


def at_once(*acts: Callable[[], Any]) -> list[Any]:
    """What each gave or raised, done in threads at the same time."""
    found: list[Any] = [None] * len(acts)

    def do(place: int) -> None:
        try:
            found[place] = acts[place]()
        except Exception as error:
            found[place] = error
        finally:
            connection.close()

    threads = [Thread(target=do, args=(place,)) for place in range(len(acts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return found


def test_of_two_moves_at_once_each_is_whole_and_they_follow_each_other(judges: Crew) -> None:
    """To the same release: one. To two: one, or both one after the other; the row says what the journal says."""
    run_id = waiting(judges)
    serving(judges, waits_then_acts("3", "newest"))
    found = at_once(lambda: move(run_id), lambda: move(run_id), lambda: move(run_id, "3"))
    moves = [entry.body for entry in entries_of(run_id) if entry.kind == "PIN"]
    refused = [error for error in found if isinstance(error, Exception)]
    assert all(isinstance(error, (PinnedAlready, PinOutrun)) for error in refused), found
    assert len(moves) == 3 - len(refused) and len(moves) in (1, 2, 3)
    for before, after in pairwise(moves):
        assert after["from"] == before["release"] != after["release"]
    run = Run.objects.get(id=run_id)
    assert run.release_id == moves[-1]["release"] == state(run_id).release_id
    signal_run(run_id=run_id, name="go", actor="olga")
    assert judges.drive(run_id).status == "done" and len(ACTED) == 1


def test_an_answer_and_a_move_at_once_both_count(judges: Crew) -> None:
    for round in range(4):
        act = acts("any")

        def asks(run: RunView, act: Any = act) -> Moves:
            return [(yield Ask("How much?", int)), (yield Call(act))]

        name = f"asks{round}"
        serve_also(flow(name=name, version="1", tools=[act])(asks))
        run_id = start(name)
        judges.advance(run_id)
        serving(judges, next_version(run_id))
        question = next(entry.seq for entry in entries_of(run_id) if entry.kind == "ASK")
        found = at_once(
            lambda run_id=run_id, question=question: answer_ask(run_id=run_id, seq=question, value=7, actor="ada"),  # type: ignore[misc]
            lambda run_id=run_id: move(run_id),  # type: ignore[misc]
        )
        assert not any(isinstance(each, Exception) for each in found), found
        assert judges.drive(run_id).status == "done" and state(run_id).done == {"result": [7, "any"]}
        assert journal(run_id).count("PIN") == 1 and state(run_id).release_id == agent_of(run_id).release_id


def test_a_claim_and_a_move_at_once_leave_one_of_them(judges: Crew) -> None:
    for _ in range(4):
        ACTED.clear()
        run_id = waiting(judges)
        old = agent_of(run_id)
        signal_run(run_id=run_id, name="go", actor="olga")  # queued: a worker may take it any moment
        worker = judges.hire()
        serving(judges, agent_of(run_id))
        _, moved = at_once(lambda: worker.advance(run_id, old.release_id), lambda: move(run_id))  # noqa: B023
        run = judges.drive(run_id)
        assert run.status == "done" and len(ACTED) == 1
        assert ["new" if "PIN" in journal(run_id) else "old"] == ACTED
        assert isinstance(moved, Run) == ("PIN" in journal(run_id)), moved
        judges.lose(worker)


def test_a_divergence_is_lifted_by_the_move_and_a_hold_is_not(judges: Crew, monkeypatch: pytest.MonkeyPatch) -> None:
    run_id = waiting(judges)
    old = agent_of(run_id)
    monkeypatch.setattr(old, "flow", otherwise("0").flow)  # other code under the same release
    signal_run(run_id=run_id, name="go", actor="olga")
    run = judges.advance(run_id)
    assert run.status == "held" and run.reason.startswith("diverged: entry 3")
    hold_run(run_id=run_id, reason="not today", actor="max")
    move(run_id)
    assert Run.objects.get(id=run_id).status == "held" and journal(run_id)[-1] == "PIN"
    resume_run(run_id=run_id, reason="today", actor="max")
    assert judges.drive(run_id).status == "done" and ACTED == ["new"]


def test_a_diverged_run_goes_on_under_code_that_decides_as_it_is_recorded(
    judges: Crew, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = waiting(judges)
    monkeypatch.setattr(agent_of(run_id), "flow", otherwise("0").flow)
    signal_run(run_id=run_id, name="go", actor="olga")
    assert judges.advance(run_id).status == "held"
    run = move(run_id)
    assert (run.status, journal(run_id)[-2:]) == ("queued", ["PIN", "CONTROL"])
    assert entries_of(run_id)[-1].actor == "olga" and entries_of(run_id)[-1].body["verb"] == "resume"
    assert judges.drive(run_id).status == "done" and ACTED == ["new"]


def test_a_judgement_alone_changes_nothing_of_the_run(judges: Crew) -> None:
    run_id = waiting(judges)
    before = untouched(run_id)
    assert judge_pin(run_id=run_id, release="2", actor="olga").verdict == "compatible"
    assert untouched(run_id) == before


def test_a_retirement_of_the_target_and_a_move_at_once_leave_one_of_them(judges: Crew) -> None:
    waits_then_acts("1", "old")
    for version in ("2", "3", "4"):
        run_id = start("patient", release="1")
        judges.advance(run_id)
        serving(judges, target := waits_then_acts(version, "new"))
        Release.objects.filter(id=target.release_id).update(stage=Stage.RETIRING)
        retire = partial(retire_release, release_id=target.release_id, reason="not needed", actor="max")
        retired, moved = at_once(retire, partial(move, run_id, version))
        assert isinstance(retired, ReleaseNeeded) != isinstance(moved, ReleaseRetired), (retired, moved)
        stage = Release.objects.get(id=target.release_id).stage
        assert (stage == Stage.RETIRED) == ("PIN" not in journal(run_id))
