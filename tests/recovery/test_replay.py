"""A replay is ordered as a row, decided by a worker that serves the release, and changes nothing of the run."""

from __future__ import annotations

import threading
from collections.abc import Generator
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from journal import crash
from journal.payloads import Pointer
from recovery.errors import OtherAgent, TooManyReplays
from recovery.models import Purpose, Replay
from recovery.redecided import decided_again
from recovery.replay_work import carry_out
from recovery.replays import MOST_OF_A_PERSON, order, send_again, wait_for
from runs.engine.claims import claim
from runs.engine.worker import Worker
from runs.errors import BadInput, ReleaseUnserved
from runs.models import AuditRecord, Release, Run, WorkerSession
from runs.queries import entries_of
from runs.registry import agents
from runs.sdk import Call, RunView
from tests.rig import tools
from tests.rig.crew import CrashHere, Crew, start
from tests.rig.ledger import Ledger, wait_until
from tests.rig.values import VALUES

Moves = Generator[Any, Any, Any]


def ended(crew: Crew, agent: str = "chain", input: Any = None) -> Run:
    return crew.drive(start(agent, input if input is not None else {"steps": 2, "effect": "keyed"}))


def ordered(run: Run, release: Release | None = None, **more: Any) -> Replay:
    return order(run, release or run.release, more.pop("purpose", Purpose.REPLAY), actor="olga", **more)


def carried_out(crew: Crew, replay: Replay, worker: Worker | None = None) -> Replay:
    carry_out(worker or crew.standing or crew.hire(), replay.pk)
    return wait_for(replay, 0)


def found_by(replay: Replay) -> list[tuple[int, str]]:
    return [(each["seq"], each["kind"]) for each in (replay.result or {})["divergences"]]


def test_a_worker_decides_it_and_the_row_says_what_it_found(crew: Crew, ledger: Ledger) -> None:
    run = ended(crew)
    replay = carried_out(crew, ordered(run))
    assert (replay.verdict, replay.error, replay.as_of_seq) == ("same", "", entries_of(run.id)[-1].seq)
    assert replay.result is not None and replay.ended_at is not None
    result = replay.result
    assert (result["compared"], result["of"], result["calls"], result["divergences"]) == (3, 3, 2, [])
    assert (result["agent"], result["version"], result["release"]) == ("chain", "1", run.release_id)
    assert replay.taken_by == crew.workers[0].session.id


def test_other_code_is_told_beside_what_is_recorded(
    crew: Crew, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    def other(run: RunView) -> Moves:
        yield Call(tools.BY_EFFECT["keyed"], amount_cents=1)
        yield Call(tools.BY_EFFECT["keyed"], amount_cents=99)

    run = ended(crew)
    monkeypatch.setattr(agents()[run.release_id], "flow", other)
    replay = carried_out(crew, ordered(run))
    assert replay.verdict == "diverged" and replay.result is not None
    (first, *_) = replay.result["divergences"]
    assert first["recorded"] == [{"call": "charge", "args": {"amount_cents": 2}}]
    assert first["attempted"] == [{"call": "charge", "args": {"amount_cents": 99}}]
    assert replay.result["first"] == first["seq"]


def test_a_pin_is_judged_and_a_fork_only_up_to_its_entry(
    crew: Crew, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = ended(crew)
    pin = carried_out(crew, ordered(run, purpose=Purpose.PIN))
    assert pin.verdict == "refused" and pin.result is not None
    assert [reason["code"] for reason in pin.result["reasons"]] == ["over"]
    fork = carried_out(crew, ordered(run, purpose=Purpose.FORK, at=4))
    assert (fork.verdict, fork.as_of_seq) == ("same", 4)
    edit = {"seq": 1, "value": {"steps": 1, "effect": "keyed"}}
    edited = carried_out(crew, ordered(run, purpose=Purpose.FORK, at=7, edits=[edit]))
    assert edited.verdict == "diverged" and edited.result is not None and edited.result["first"] == 6
    wrong = carried_out(crew, ordered(run, purpose=Purpose.FORK, at=7, edits=[{"seq": 3, "value": 1}]))
    assert wrong.error == "entry 3 is a TOOL_CALL, and nothing in it can be edited" and wrong.result is None


def test_values_that_no_json_knows_compare_and_are_kept_as_the_journal_shows_them(
    crew: Crew, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = {name: ended(crew, "argument", {"name": name}) for name in VALUES if "50 MB" not in name}

    def other(run: RunView) -> Moves:
        return (yield Call(tools.echo, value=("another", VALUES[run.input["name"]]())))

    for name, run in runs.items():
        replay = carried_out(crew, ordered(run))
        assert (replay.error, replay.verdict) == ("", "same"), name
    for name, run in runs.items():
        with monkeypatch.context() as patched:
            patched.setattr(agents()[run.release_id], "flow", other)
            replay = carried_out(crew, ordered(run))
        assert (replay.error, replay.verdict) == ("", "diverged"), name
        assert replay.result is not None and replay.result["divergences"][0]["kind"] == "arguments"
    assert "\u2400" in str(Replay.objects.filter(run=runs["nul"]).latest("id").result)


def test_large_values_beside_the_journal_are_loaded_and_cut_where_they_are_shown(
    crew: Crew, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = ended(crew, "argument", {"name": "50 MB text"})
    assert any(isinstance(value, Pointer) for entry in entries_of(run.id) for value in entry.body.values())
    replay = carried_out(crew, ordered(run))
    assert (replay.error, replay.verdict) == ("", "same")
    monkeypatch.setattr(agents()[run.release_id], "flow", lambda run: iter([Call(tools.look)]))
    told = carried_out(crew, ordered(run)).result
    assert told is not None
    assert told["divergences"][0]["recorded"]["$"] == "cut" and told["divergences"][0]["recorded"]["characters"] > 10**7


def test_it_is_refused_where_nobody_could_decide_it(crew: Crew, ledger: Ledger) -> None:
    run = ended(crew)
    other = next(agent for agent in agents().values() if agent.name == "keyed")
    with pytest.raises(OtherAgent):
        ordered(run, Release.objects.get(id=other.release_id))
    with pytest.raises(BadInput, match="asks no model"):
        ordered(run, asks_model=True)
    for at in (0, 99):
        with pytest.raises(BadInput, match=f"entries 1 to {entries_of(run.id)[-1].seq}, and no entry {at}"):
            ordered(run, at=at)
    unserved = Release.objects.create(id="f" * 64, agent="chain", version="99", content={})
    with pytest.raises(ReleaseUnserved):
        ordered(run, unserved)
    assert not Replay.objects.exists()


def test_one_person_has_only_a_few_at_a_time(crew: Crew, ledger: Ledger) -> None:
    run = ended(crew)
    for _ in range(MOST_OF_A_PERSON):
        ordered(run)
    with pytest.raises(TooManyReplays, match="ordered by olga: at most 8 at once"):
        ordered(run)
    order(run, run.release, Purpose.PIN, actor="olga", bulk_id=1)
    order(run, run.release, Purpose.REPLAY, actor="max")


def test_who_ordered_it_stands_in_the_audit_list(crew: Crew, ledger: Ledger) -> None:
    run = ended(crew)
    replay = ordered(run)
    ordered(run, purpose=Purpose.PIN)
    (found,) = AuditRecord.objects.filter(act="run.replay")
    assert (found.actor, found.run, found.subject) == ("olga", run.id, "chain@1")
    assert found.detail == {"replay": replay.pk, "asks_model": False}


def test_code_that_never_decides_is_given_up_and_the_row_says_so(
    crew: Crew, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, worker, let_go = ended(crew), crew.hire(), threading.Event()

    def hangs(run: RunView) -> Moves:
        yield Call(tools.BY_EFFECT["keyed"], amount_cents=1)
        let_go.wait(120)

    monkeypatch.setattr(agents()[run.release_id], "flow", hangs)
    worker.decision_limit = 0.3
    replay = carried_out(crew, ordered(run), worker)
    assert replay.error == "the agent's code did not decide within 0.3 s (what entry 5 decided)"
    assert replay.verdict == "" and worker.calls.abandoned == 1
    let_go.set()
    wait_until(lambda: worker.calls.abandoned == 0, "its thread comes back")


@pytest.mark.parametrize("point", ["after-replay-taken", "before-replay-written"])
def test_a_worker_that_dies_over_it_leaves_it_to_another(crew: Crew, ledger: Ledger, point: str) -> None:
    run, worker = ended(crew), crew.hire()
    replay = ordered(run)
    die_over(replay, worker, point)
    other = crew.hire()
    assert carried_out(crew, replay, other).ended_at is None, "the session that has it lives"
    crew.lose(worker)
    assert carried_out(crew, replay, other).verdict == "same"
    assert Replay.objects.get().takes == 2


def test_one_that_kills_its_workers_is_given_up_and_those_after_it_are_not_tried(crew: Crew, ledger: Ledger) -> None:
    run = ended(crew)
    first, second, later = ordered(run), ordered(run), ordered(run)
    for _ in range(2):
        worker = crew.hire()
        die_over(first, worker)
        crew.lose(worker)
    assert carried_out(crew, first, crew.hire()).error == "2 workers died or stood still over it"
    assert "not tried" in carried_out(crew, second).error
    other_code = crew.hire()
    WorkerSession.objects.filter(id=other_code.session.id).update(codes={run.release_id: "mended"})
    assert carried_out(crew, later, other_code).verdict == "same"
    long_ago = Replay.objects.get(pk=first.pk).ended_at - timedelta(hours=1)
    Replay.objects.filter(pk=first.pk).update(ended_at=long_ago)
    assert carried_out(crew, ordered(run)).verdict == "same"


@pytest.mark.parametrize("over_a_replay", [True, False])
def test_runs_beside_a_replay_that_kills_count_no_crash(crew: Crew, ledger: Ledger, over_a_replay: bool) -> None:
    """However often it happens: it was not they."""
    run, beside = ended(crew), start("keyed", {})
    for _ in range(3):
        worker = crew.hire()
        with worker.connections.connection() as conn:
            claim(conn, worker.session.id, beside, Run.objects.get(id=beside).release_id, True, None, False)
        if over_a_replay:
            die_over(ordered(run), worker)
        crew.lose(worker)
    assert crew.drive(beside).status == ("done" if over_a_replay else "quarantined")
    assert Run.objects.get(id=beside).crashes == (0 if over_a_replay else 3)


def die_over(replay: Replay, worker: Worker, point: str = "after-replay-taken") -> None:
    crash.hook = die_at(point)
    with pytest.raises(CrashHere):
        carry_out(worker, replay.pk)
    crash.hook = None


def die_at(point: str) -> Any:
    def hook(name: str) -> None:
        if name == point:
            raise CrashHere

    return hook


def test_the_last_judgements_of_a_bulk_act_wake_a_sweep(crew: Crew, ledger: Ledger) -> None:
    """It orders the next ones; of the first ones of many there is nothing to do yet."""
    run = ended(crew)
    made = [order(run, run.release, Purpose.PIN, actor="olga", bulk_id=1) for _ in range(5)]
    with psycopg.connect(crew.dsn, autocommit=True) as conn:
        conn.execute("LISTEN holdfast_sweep")
        told = []
        for replay in [*made, ordered(run)]:
            carried_out(crew, replay)
            told.append(len(list(conn.notifies(timeout=0.2, stop_after=1))))
    assert told == [0, 0, 1, 1, 1, 0]


def test_a_sweep_sends_again_what_no_message_reached_and_ends_what_waits_too_long(crew: Crew, ledger: Ledger) -> None:
    run = ended(crew)
    replay = ordered(run)
    sent: list[tuple[int, str]] = []

    def take(replay_id: int, release_id: str) -> bool:
        sent.append((replay_id, release_id))
        return True

    with psycopg.connect(crew.dsn, autocommit=True) as conn:
        assert send_again(conn, 60, take) == 0, "its first message has some time"
        wait_until(lambda: send_again(conn, 0.01, take) == 1, "it goes out again")
        assert sent == [(replay.pk, run.release_id)] and Replay.objects.get().dispatches == 1
        conn.execute("UPDATE recovery_replay SET created_at = created_at - interval '1 hour'")
        send_again(conn, 0.01, take)
    late = wait_for(replay, 0)
    assert late.error == "no worker that serves the release has taken it in 15 minutes" and late.ended_at is not None
    assert carried_out(crew, replay).result is None, "what has ended is not decided any more"


def test_a_worker_that_drains_gives_it_back(crew: Crew, ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    run, worker, at_work, let_go = ended(crew), crew.hire(), threading.Event(), threading.Event()

    def slow(run: RunView) -> Moves:
        at_work.set()
        let_go.wait(120)
        yield Call(tools.BY_EFFECT["keyed"], amount_cents=1)

    replay = ordered(run)
    with monkeypatch.context() as patched:
        patched.setattr(agents()[run.release_id], "flow", slow)
        thread = threading.Thread(target=carry_out, args=(worker, replay.pk))
        thread.start()
        assert at_work.wait(60)
        worker.drain()
        thread.join(60)
        let_go.set()
        wait_until(lambda: worker.calls.abandoned == 0, "its thread comes back")
    given_back = Replay.objects.get()
    assert (given_back.taken_by, given_back.takes, given_back.ended_at) == (None, 0, None)
    carry_out(worker, replay.pk)
    assert Replay.objects.get().ended_at is None, "a worker that drains takes none"
    assert carried_out(crew, replay, crew.hire()).verdict == "same"


def test_replays_take_a_share_of_a_worker_and_no_more(
    crew: Crew, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, worker, at_work, let_go = ended(crew), crew.hire(), threading.Event(), threading.Event()

    def slow(run: RunView) -> Moves:
        at_work.set()
        let_go.wait(120)
        yield Call(tools.BY_EFFECT["keyed"], amount_cents=1)

    first, second = ordered(run), ordered(run)
    with monkeypatch.context() as patched:
        patched.setattr(agents()[run.release_id], "flow", slow)
        thread = threading.Thread(target=carry_out, args=(worker, first.pk))
        thread.start()
        assert at_work.wait(60)
        carry_out(worker, second.pk)
        assert Replay.objects.get(pk=second.pk).taken_by is None
        let_go.set()
        thread.join(60)
    assert carried_out(crew, second, worker).verdict == "same"


def test_the_model_is_asked_again_only_where_that_was_ordered_and_its_cost_is_told(crew: Crew, ledger: Ledger) -> None:
    run = ended(crew, "model", {"effect": "keyed"})
    before = ledger.model_requests(run.id)
    plain = carried_out(crew, ordered(run))
    assert plain.verdict == "same" and plain.result is not None and plain.result["model"] is None
    assert ledger.model_requests(run.id) == before
    asked = carried_out(crew, ordered(run, asks_model=True))
    assert asked.verdict == "same" and asked.result is not None
    assert {name: asked.result["model"][name] for name in ("requests", "failed", "tokens", "divergences")} == {
        "requests": 3, "failed": 0, "tokens": 30, "divergences": [],
    }  # fmt: skip
    assert ledger.model_requests(run.id) == before + 3


def test_the_same_result_is_made_in_this_process(crew: Crew, ledger: Ledger) -> None:
    run = ended(crew)
    made = decided_again(agents()[run.release_id], entries_of(run.id))
    assert made == carried_out(crew, ordered(run)).result
