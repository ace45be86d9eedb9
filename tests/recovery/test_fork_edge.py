"""What is kept, refused and begun anew when a run is forked: every kind of source, payload, secret, bound and label."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest
from django.db import connection, transaction

from journal.append import new_run_id
from journal.copying import PastAppend, copy_journals
from journal.entries import Draft
from journal.erase import erase_entries
from journal.errors import PayloadStoreDown, PrefixDamaged, PrefixErased
from journal.export import export_run
from journal.importing import import_journals
from journal.payloads import PayloadStore, payload_store, pointers_in
from journal.verify import verify_run
from recovery.errors import NotAFrontier
from recovery.fork_preview import preview
from runs.approvals import decide_approval
from runs.commands import answer_ask, cancel_run, hold_run
from runs.errors import BusinessIdTaken, FourEyes, ReasonMissing, StatelessRun
from runs.models import AuditRecord, Run
from runs.policies import Policy
from runs.queries import entries_of, state_of
from runs.registry import agents, announce
from runs.sdk import Agent, Budget, Call, Finish, RunView, flow
from runs.secrets import opened
from tests.recovery.test_fork import approve, chain, fork
from tests.rig import tools
from tests.rig.crew import Crew, journal, start
from tests.rig.ledger import Ledger
from tests.rig.robot import APPROVERS
from tests.rig.versions import serve_also
from tests.runs import secretive

pytestmark = pytest.mark.django_db(transaction=True)


# -- lineage ----------------------------------------------------------------------------------------------------------


def test_lineage_is_kept_both_ways_and_over_generations(crew: Crew, ledger: Ledger) -> None:
    run_id = chain(crew)
    child = fork(run_id, 4)
    crew.drive(child.id)
    grandchild = fork(child.id, 7)
    assert [(r.forked_from_id, r.forked_at, r.lineage) for r in (child, grandchild)] == [
        (run_id, 4, run_id), (child.id, 7, run_id),
    ]  # fmt: skip
    assert Run.objects.get(id=run_id).lineage == run_id and Run.objects.get(id=run_id).forked_from is None
    noted = entries_of(run_id)[-1]
    assert (noted.kind, noted.actor, noted.body["fork"], noted.body["at"]) == ("NOTE", "olga", str(child.id), 4)
    origins = [e.body["copied_from"] for e in entries_of(grandchild.id)[:7]]
    assert origins == [{"run": str(run_id), "seq": n} for n in range(1, 5)] + [
        {"run": str(child.id), "seq": n} for n in range(5, 8)
    ]
    assert crew.drive(grandchild.id).status == "done" and verify_run(grandchild.id) == []
    assert state_of(grandchild.id).fork["root"] == str(run_id)  # type: ignore[index]
    audited = AuditRecord.objects.filter(act="run.fork", run=run_id).get()
    assert (audited.actor, audited.reason, audited.detail["fork"]) == ("olga", "once more", str(child.id))


def test_in_a_grandchild_what_any_relative_has_done_counts_and_what_it_copied_does_not(
    crew: Crew, ledger: Ledger
) -> None:
    run_id = chain(crew, "keyed", 3)
    child = fork(run_id, 4)
    crew.drive(child.id)
    approve(child.id, 2)
    crew.drive(child.id)  # its third call waits
    at = journal(child.id).index("OBS:2") + 1
    grandchild = fork(child.id, at)
    crew.drive(grandchild.id)
    repeats = state_of(grandchild.id).slots[3].approval.repeats  # type: ignore[union-attr]
    assert sorted((r.run, r.step, r.outcome) for r in repeats) == sorted(
        [(run_id, 3, "succeeded"), (child.id, 3, "awaiting_approval")]
    )


def test_what_is_random_and_the_runs_id_are_the_same_in_a_fork(crew: Crew, ledger: Ledger) -> None:
    def decide(state: RunView) -> Any:
        if state.last is None:
            return Call(tools.look, id=f"{state.id} {state.random('x')}")
        return Finish([str(state.id), state.random("y")])

    serve_also(Agent(name="dice", version="1", tools=(tools.look,), decide=decide))
    run_id = start("dice", release="1")
    assert crew.drive(run_id).status == "done"
    forked = fork(run_id, 4)
    assert crew.drive(forked.id).status == "done"
    assert state_of(forked.id).done["result"] == state_of(run_id).done["result"]  # type: ignore[index]


# -- sources ----------------------------------------------------------------------------------------------------------


def test_a_running_source_is_forked_up_to_what_it_has_committed(crew: Crew, ledger: Ledger) -> None:
    run_id = start("asks", {})
    crew.drive(run_id)
    with pytest.raises(NotAFrontier, match=r"ask \(step 1, entry 3\) was not settled"):
        fork(run_id, 3)
    forked = fork(run_id, 2)
    assert entries_of(run_id)[-1].body["verb"] == "fork" and entries_of(run_id)[-1].v == 2
    for each, amount in ((run_id, 5), (forked.id, 6)):
        crew.drive(each)
        seq = state_of(each).slots[1].seq
        answer_ask(run_id=each, seq=seq, value=amount, actor="olga")
        assert crew.drive(each).status == "done"
    assert [ledger.acted(f"{each}:2") for each in (run_id, forked.id)] == [1, 1]


def test_what_stopped_the_source_does_not_stop_the_fork(crew: Crew, ledger: Ledger) -> None:
    run_id = start("chain", {"steps": 1, "effect": "read"})
    hold_run(run_id=run_id, reason="wait", actor="olga")
    seen = preview(Run.objects.get(id=run_id), 2)
    assert seen.lifts == ["the hold of entry 2: wait"]
    forked = fork(run_id, 2)
    assert crew.drive(forked.id).status == "done"
    assert [e.body.get("verb") for e in entries_of(forked.id) if e.kind == "CONTROL"] == ["hold", "resume"]
    assert Run.objects.get(id=run_id).status == "held"


def test_behind_a_cancel_nothing_is_forked(crew: Crew, ledger: Ledger) -> None:
    run_id = start("chain", {"steps": 1, "effect": "read"})
    cancel_run(run_id=run_id, reason="no", actor="olga")
    with pytest.raises(NotAFrontier, match="cancelled in entry 2"):
        fork(run_id, 2)
    assert crew.drive(fork(run_id, 1).id).status == "done"


def test_a_run_without_a_journal_and_one_without_a_reason_are_refused(crew: Crew) -> None:
    serve_also(
        Agent(name="brief", version="1", tools=(tools.look,), decide=lambda s: Finish(1), durability="stateless")
    )
    run_id = start("brief", release="1")
    with pytest.raises(StatelessRun):
        fork(run_id, 1)
    with pytest.raises(ReasonMissing):
        fork(start("chain", {"steps": 1, "effect": "read"}), 1, reason=" ")


def test_an_erased_prefix_is_refused_and_an_erased_relative_is_asked_about(crew: Crew, ledger: Ledger) -> None:
    run_id = chain(crew, "keyed", 2)
    forked = fork(run_id, 4)
    erase_entries(run_id, [6, 7], actor="max", reason="a request")
    with pytest.raises((PrefixErased, NotAFrontier), match="erased"):
        fork(run_id, 7)
    held = crew.drive(forked.id)
    assert held.status == "awaiting_approval" and "cannot be compared any more" in held.reason


def test_a_changed_journal_is_not_copied(crew: Crew, ledger: Ledger) -> None:
    run_id = chain(crew)
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE journal_entry DISABLE TRIGGER USER")
        cursor.execute("UPDATE journal_entry SET actor = 'olga' WHERE run_id = %s AND seq = 3", [run_id])
        cursor.execute("ALTER TABLE journal_entry ENABLE TRIGGER USER")
    with pytest.raises(PrefixDamaged):
        fork(run_id, 4)


# -- payloads and secrets ---------------------------------------------------------------------------------------------


def test_payloads_are_copied_first_and_a_store_that_is_down_refuses_it(
    crew: Crew, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = "x" * 50_000
    run_id = start("chain", {"steps": 1, "effect": "read", "note": large})
    assert crew.drive(run_id).status == "done"
    with monkeypatch.context() as patch:
        patch.setattr(PayloadStore, "copy", down)
        with pytest.raises(PayloadStoreDown):
            fork(run_id, 4)
    assert not Run.objects.filter(forked_from=run_id).exists() and journal(run_id)[-1] == "DONE"
    forked = fork(run_id, 4)
    (pointer,) = pointers_in(entries_of(forked.id)[0].body)
    assert f"/{forked.id}/" in pointer.uri and payload_store().load(pointer)["note"] == large
    erase_entries(run_id, None, actor="max", reason="a request")  # and its objects with it
    assert verify_run(forked.id) == []
    assert crew.drive(forked.id).status == "done"


def down(*_: Any) -> Any:
    raise PayloadStoreDown("s3://away")


def test_secrets_stay_sealed_and_open_in_the_fork(crew: Crew, settings: Any) -> None:
    settings.HOLDFAST_AGENTS = ("tests.runs.secretive",)
    agents.cache_clear()
    announce()
    run_id = start("charges", {})
    secretive.seen.clear()
    crew.standing = None
    assert crew.drive(run_id).status == "done"
    forked = fork(run_id, 1)
    assert crew.drive(forked.id).status == "awaiting_approval"  # sealed to the same bytes: the same call
    assert secretive.seen == [secretive.SECRET]
    assert opened(state_of(forked.id).slots[1].args)["api_key"] == secretive.SECRET
    rows = psycopg.connect(crew.dsn)
    with rows:
        bodies = rows.execute("SELECT body FROM journal_entry WHERE run_id = %s", [forked.id]).fetchall()
    assert not any(secretive.SECRET.encode() in bytes(body) for (body,) in bodies)


# -- bounds -----------------------------------------------------------------------------------------------------------


def test_only_one_open_run_has_a_business_id(crew: Crew) -> None:
    run_id = start("only", labels={"order": "7", "team": "blue"})
    with pytest.raises(BusinessIdTaken):
        fork(run_id, 1)
    assert "belongs to" in preview(Run.objects.get(id=run_id), 1).refusals[0]
    cancel_run(run_id=run_id, reason="no", actor="olga")
    crew.drive(run_id)
    forked = fork(run_id, 1)
    assert (forked.business_id, forked.labels) == ("order:7", {"order": "7", "team": "blue"})
    assert (forked.request_key, forked.deadline_at, forked.parent) == (None, None, None)


def test_its_budget_is_whole_and_what_it_copied_is_not_its_own(crew: Crew, ledger: Ledger) -> None:
    @flow(name="spends", version="1", tools=[tools.look], budget=Budget(steps=2, seconds=3600), deadline=60)
    def spends(run: RunView) -> Any:
        for _ in range(3):
            yield Call(tools.look)

    serve_also(spends)
    run_id = start("spends", release="1")
    assert crew.drive(run_id).status == "held"  # its brake
    at = journal(run_id).index("OBS:2") + 1
    forked = fork(run_id, at)
    assert forked.deadline_at is not None and forked.deadline_at > datetime.now(UTC) + timedelta(seconds=30)
    assert crew.drive(forked.id).status == "done"


def test_who_forks_a_run_is_no_second_pair_of_eyes(crew: Crew, ledger: Ledger) -> None:
    @flow(name="careful", version="1", tools=[replace(tools.charge, approval=Policy(four_eyes=True))])
    def careful(run: RunView) -> Any:
        yield Call(tools.charge)

    serve_also(careful)
    run_id = start("careful", release="1")
    crew.drive(run_id)
    forked = fork(run_id, 1, actor="ada")
    assert crew.drive(forked.id).status == "awaiting_approval"
    slot = state_of(forked.id).slots[1]
    given: dict[str, Any] = {"verdict": "approve", "note": "", "groups": APPROVERS}
    given |= {"run_id": forked.id, "seq": slot.seq, "digest": slot.approval.digest}  # type: ignore[union-attr]
    with pytest.raises(FourEyes):
        decide_approval(actor="ada", **given)
    decide_approval(actor="max", **given)
    assert crew.drive(forked.id).status == "done"


# -- size and travel --------------------------------------------------------------------------------------------------


def long_journal(agent: Agent, steps: int) -> UUID:
    """A run of the chain of reads, as a worker would have written it up to its last observation."""
    began, run_id = datetime.now(UTC) - timedelta(hours=1), new_run_id()
    body = {"agent": agent.name, "input": {"steps": steps + 1, "effect": "read"}, "release": agent.release_id,
            "code": agent.code_digest}  # fmt: skip
    appends = [PastAppend(began, 0, [Draft("START", body)])]
    for step in range(1, steps + 1):
        seen = 1 if step == 1 else 3 * step - 2
        call = {"tool": "look", "args": {"amount_cents": step}, "key": f"{run_id}:{step}", "effect": "read",
                "digest": "0" * 64, "gate": None}  # fmt: skip
        plan = [Draft("PLAN", {"seen": seen}), Draft("TOOL_CALL", call, step=step)]
        if step > 1:
            done = {"outcome": "succeeded", "result": {}, "source": "worker"}
            plan.insert(0, Draft("OBS", done, step=step - 1, settles=step - 1))
        appends.append(PastAppend(began + timedelta(seconds=step), 1, plan))
    done = {"outcome": "succeeded", "result": {}, "source": "worker"}
    appends.append(PastAppend(began + timedelta(seconds=steps + 1), 1, [Draft("OBS", done, step=steps, settles=steps)]))
    with transaction.atomic():
        copy_journals([(run_id, appends)])
        Run.objects.create(id=run_id, agent=agent.name, release_id=agent.release_id, status="held")
    return run_id


def test_ten_thousand_entries_are_copied_within_seconds(crew: Crew, ledger: Ledger) -> None:
    agent = next(agent for agent in agents().values() if agent.name == "chain")
    run_id = long_journal(agent, 3_400)
    at = len(entries_of(run_id))
    assert at > 10_000
    began = time.monotonic()
    forked = fork(run_id, at)
    took = time.monotonic() - began
    assert verify_run(forked.id) == []
    assert took < 10, took
    assert crew.drive(forked.id).status == "done"


def test_a_fork_is_exported_and_imported_like_any_journal(crew: Crew, ledger: Ledger) -> None:
    run_id = chain(crew)
    forked = fork(run_id, 4)
    crew.drive(forked.id)
    lines = list(export_run(forked.id))
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE journal_entry DISABLE TRIGGER USER")
        cursor.execute("DELETE FROM journal_entry WHERE run_id = %s", [forked.id])
        cursor.execute("DELETE FROM journal_head WHERE run_id = %s", [forked.id])
        cursor.execute("ALTER TABLE journal_entry ENABLE TRIGGER USER")
    assert import_journals(lines) == [forked.id]
    assert verify_run(forked.id) == [] and list(export_run(forked.id)) == lines


# -- what it costs others ---------------------------------------------------------------------------------------------


def test_a_run_without_relatives_asks_and_writes_nothing_for_it(
    crew: Crew, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    execute = psycopg.Cursor.execute

    def counted(self: Any, query: Any, *args: Any, **kwargs: Any) -> Any:
        said.append(str(query))
        return execute(self, query, *args, **kwargs)

    monkeypatch.setattr(psycopg.Cursor, "execute", counted)
    run_id = start("chain", {"steps": 3, "effect": "keyed"})
    assert crew.drive(run_id).status == "done"
    assert said and not [query for query in said if "lineage = " in query]
    assert [e.body["gate"] for e in entries_of(run_id) if e.kind == "TOOL_CALL"] == [None] * 3
    commits = {(e.epoch, e.recorded_at) for e in entries_of(run_id)}
    assert len(commits) == 1 + 1 + 3  # START, the first call, then one a step
    said.clear()
    forked = fork(run_id, 1)
    crew.drive(forked.id)
    assert [query for query in said if "lineage = " in query]
