"""Stateless runs: the same door, one row, no journal; ended once, whatever happens to their worker."""

import threading
import time
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import psycopg
import pytest
from django.contrib.auth.models import User
from django.test import Client

from journal.encoding import decode
from journal.payloads import payload_store
from recovery.sweep import Sweep
from runs.access import ensure_demo_users
from runs.agents import Agent, flow
from runs.commands import cancel_run, hold_run, signal_run
from runs.contracts import refusals
from runs.engine import stateless
from runs.errors import RunEnded, StatelessRun
from runs.gates import lift_gate, place_gate
from runs.models import Run
from runs.queries import entries_of, state_of
from runs.registry import agents, announce
from runs.rest.answers import run_detail
from runs.sdk import start
from runs.starting import start_run
from tests.rig.crew import Crew
from tests.rig.ledger import wait_until
from tests.runs import classifiers
from tests.testing.agents import mail


@pytest.fixture
def crew(dsn: str, settings: Any) -> Iterator[Crew]:
    settings.HOLDFAST_AGENTS = ("tests.runs.classifiers",)
    agents.cache_clear()
    payload_store.cache_clear()
    announce()
    classifiers.FAILURES.clear()
    classifiers.GO.clear()
    classifiers.ENTERED.clear()
    crew = Crew(dsn)
    yield crew
    classifiers.GO.set()
    crew.close()
    agents.cache_clear()


def ending(run_id: UUID) -> Any:
    run = Run.objects.get(id=run_id)
    return decode(bytes(run.ending)) if run.ending is not None else None


def in_thread(crew: Crew, run_id: UUID) -> threading.Thread:
    thread = threading.Thread(target=crew.hire().advance, args=(run_id, Run.objects.get(id=run_id).release_id))
    thread.start()
    assert classifiers.ENTERED.wait(60)
    return thread


def sweep(crew: Crew) -> int:
    sweep = Sweep(crew.dsn, lease=0.0, every=0.0, dispatch=crew.take)
    try:
        return sweep.once()
    finally:
        sweep.close()


def test_a_run_ends_in_its_row_and_leaves_no_journal(crew: Crew) -> None:
    run_id = start("classify", {"word": "a"}, labels={"desk": "berlin"})
    run = crew.drive(run_id)
    assert (run.status, run.reason, run.session_id, run.epoch) == ("done", "", None, 1)
    assert ending(run_id) == {"result": ["A", "B", "C"]} and run.ended_at and run.labels == {"desk": "berlin"}
    assert entries_of(run_id) == []
    with psycopg.connect(crew.dsn) as conn:
        assert conn.execute("SELECT count(*) FROM journal_head").fetchone() == (0,)


def test_a_model_and_a_backoff_work_as_everywhere(crew: Crew) -> None:
    classifiers.FAILURES.append(classifiers.busy("busy"))
    assert ending(crew.drive(start("model-classify")).id) == {"result": "MODEL"}


def test_the_same_request_key_is_the_same_run(crew: Crew) -> None:
    first, made = start_run(agent="classify", input={"word": "a"}, actor="olga", request_key="k")
    again, made_again = start_run(agent="classify", input={"word": "a"}, actor="olga", request_key="k")
    assert (first.id, made, made_again) == (again.id, True, False)


def test_what_fails_says_why(crew: Crew) -> None:
    run = crew.drive(start("classify", {"word": 7}))
    assert run.status == "failed" and "word" in run.reason and ending(run.id)["error"]["reason"] == run.reason


def test_a_wait_is_refused_and_names_the_fix(crew: Crew) -> None:
    run = crew.drive(start("asking-classify"))
    assert (run.status, run.reason) == ("failed", "a stateless run cannot wait: for Ask take durability='journal'")


def test_a_run_that_takes_too_long_fails(crew: Crew, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stateless, "LONGEST", 0.3)
    run = crew.drive(start("slow-classify"))
    assert run.status == "failed" and run.reason.startswith("took longer than"), run.reason


def test_a_run_whose_worker_died_ends_and_says_what_to_do(crew: Crew) -> None:
    run_id = start("slow-classify")
    thread = in_thread(crew, run_id)
    with psycopg.connect(crew.dsn, autocommit=True) as conn:
        conn.execute("UPDATE runs_workersession SET ended_at = clock_timestamp()")
    sweep(crew)
    run = Run.objects.get(id=run_id)
    assert (run.status, run.reason, run.session_id) == ("failed", "worker lost, start again", None)
    classifiers.GO.set()
    thread.join(60)
    assert ending(run_id) == {"error": {"reason": "worker lost, start again"}}, "a late result changes nothing"


def test_a_run_is_cancelled_before_and_while_it_runs(crew: Crew) -> None:
    before = start("classify", {"word": "a"})
    assert cancel_run(run_id=before, reason="no need", actor="olga").status == "cancelled"
    assert crew.drive(before).reason == "cancelled by olga: no need" and ending(before) == {"cancelled": "no need"}
    run_id = start("slow-classify")
    thread = in_thread(crew, run_id)
    assert cancel_run(run_id=run_id, reason="no need", actor="olga").status == "cancelled"
    classifiers.GO.set()
    thread.join(60)
    assert ending(run_id) == {"cancelled": "no need"}
    with pytest.raises(RunEnded):
        cancel_run(run_id=run_id, reason="again", actor="olga")


def test_other_commands_say_that_it_has_no_journal(crew: Crew) -> None:
    run_id = start("classify", {"word": "a"})
    with pytest.raises(StatelessRun, match="has no journal"):
        hold_run(run_id=run_id, reason="look", actor="olga")
    with pytest.raises(StatelessRun):
        signal_run(run_id=run_id, name="go", actor="olga")


def test_a_run_that_no_message_reached_is_sent_by_the_sweep(crew: Crew) -> None:
    crew.hire()
    run_id = start("classify", {"word": "a"})
    crew.messages.clear()
    wait_until(lambda: sweep(crew) == 1, "it is sent")
    assert crew.messages.pop()[0] == run_id


def test_a_run_waits_for_a_worker_that_serves_it(crew: Crew) -> None:
    run_id = start("classify", {"word": "a"})
    wait_until(lambda: sweep(crew) == 0 and Run.objects.get(id=run_id).status != "queued", "it is stranded")
    run = Run.objects.get(id=run_id)
    assert (run.status, run.reason) == ("waiting_for_version", "waits for a worker that serves classify@1")
    assert crew.drive(run_id).status == "done" if crew.hire().advance(run_id, run.release_id) is None else False


def test_it_waits_at_a_gate_and_goes_on_when_it_is_lifted(crew: Crew) -> None:
    place_gate(scope="agent:classify", reason="look first", actor="olga")
    run_id = start("classify", {"word": "a"})
    crew.hire().advance(run_id, Run.objects.get(id=run_id).release_id)
    held = Run.objects.get(id=run_id)
    assert (held.status, held.reason) == ("queued", "gate agent:classify: look first")
    assert sweep(crew) == 0, "it is not sent while the gate is there"
    lift_gate(scope="agent:classify", reason="looked", actor="olga")
    wait_until(lambda: sweep(crew) >= 1, "the sweep sends it")
    assert Run.objects.get(id=run_id).reason == "waits for a worker"


def test_limits_hold_for_it_too(crew: Crew) -> None:
    assert ending(crew.drive(start("limited-classify")).id) == {"result": [1, 1]}


def test_a_spawned_one_has_a_journal_like_any_child(crew: Crew) -> None:
    run_id = start("classify-parent")
    deadline = time.monotonic() + 30
    while Run.objects.get(id=run_id).status != "done":
        assert time.monotonic() < deadline, list(Run.objects.values_list("agent", "status", "reason"))
        for run in Run.objects.filter(ended_at=None):
            crew.standing = crew.standing or crew.hire()
            crew.standing.advance(run.id, run.release_id)
    assert entries_of(run_id)[-1].body == {"result": ["CHILD", "B", "C"]}


def test_it_costs_two_commits_beside_its_start(crew: Crew) -> None:
    """The least of some runs, more of them while the server's other databases write."""
    worker, commits = crew.hire(), {}
    for agent, most in (("classify", 200), ("journaled-classify", 5)):
        least = 1_000
        for _ in range(most):
            run_id = start(agent, {"word": "a"})
            release = Run.objects.get(id=run_id).release_id
            before = transactions(crew)
            worker.advance(run_id, release)
            least = min(least, transactions(crew) - before)
            assert Run.objects.get(id=run_id).status == "done"
            if least <= 2:
                break
        commits[agent] = least
    assert commits["classify"] == 2 < commits["journaled-classify"], commits


def transactions(crew: Crew) -> int:
    """How many wrote something so far."""
    with psycopg.connect(crew.dsn, autocommit=True) as conn:
        row = conn.execute("SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint").fetchone()
    assert row is not None
    return int(row[0])


def test_its_page_and_the_api_tell_what_there_is(crew: Crew, settings: Any) -> None:
    settings.ALLOWED_HOSTS = ["testserver"]
    ensure_demo_users("four-words-of-the-demo")
    run = crew.drive(start("classify", {"word": "a"}))
    told = run_detail(run)
    assert (told.status, told.result, told.last_seq) == ("done", ["A", "B", "C"], 0)
    client = Client()
    client.force_login(User.objects.get(username="olga"))
    for path in (f"/runs/{run.id}", "/runs?q=", "/agents/classify"):
        page = client.get(path)
        assert page.status_code == 200 and b"Stateless" in page.content, path
    assert state_of(run.id).slots == {}


def test_an_agent_that_acts_cannot_be_stateless() -> None:
    acting = Agent("acting", "1", [mail], decide=lambda state: None, durability="stateless")
    (finding,) = refusals(acting)
    assert "agent acting is stateless, but its tool mail is 'unkeyed'" in str(finding)
    assert "agents.py:" in finding.place and "durability='journal'" in finding.fix
    assert refusals(flow(name="fine", version="1", durability="stateless")(classifiers.classify.flow)) == []  # type: ignore[arg-type]
