"""A run that is moved to another release: it goes on there and nowhere else, with nothing done twice."""

from collections.abc import Generator
from typing import Any
from uuid import UUID

import pytest
from django.db import connection

from journal.append import append_person, lock_head
from journal.entries import Draft, Kind
from runs.approvals import decide_approval
from runs.commands import hold_run, locked_run, resume_run, signal_run
from runs.engine.claims import claim
from runs.errors import BusinessIdTaken
from runs.gates import lift_gate, place_gate
from runs.models import Permit, Run
from runs.pinning import move_run
from runs.queries import entries_of
from runs.registry import announce_one
from runs.sdk import Agent, Call, Finish, Limit, RunView, Sleep, Spawn, ToolContext, WaitFor, flow, tool
from tests.rig.crew import Crew, journal, start, state
from tests.rig.robot import APPROVERS
from tests.rig.versions import agent_of, next_version, pin, serve_also

Moves = Generator[Any, Any, Any]
ACTED: list[str] = []


def acts(word: str, **declared: Any) -> Any:
    """A tool named act, which leaves `word`."""

    @tool(name="act", effect="keyed", **declared)
    def act(ctx: ToolContext) -> str:
        ACTED.append(word)
        return word

    return act


def waits_then_acts(version: str, word: str, **more: Any) -> Agent:
    act = acts(word)

    @flow(name="patient", version=version, tools=[act], **more)
    def patient(run: RunView) -> Moves:
        yield WaitFor("go")
        return (yield Call(act))

    return serve_also(patient)


@pytest.fixture(autouse=True)
def nothing_acted() -> None:
    ACTED.clear()


def waiting(crew: Crew, **given: Any) -> UUID:
    """A run of version 1 that waits for its signal."""
    waits_then_acts("1", "old")
    run_id = start("patient", **given)
    assert crew.drive(run_id).status == "waiting"
    return run_id


def test_it_goes_on_under_the_new_release_from_where_it_stood(crew: Crew) -> None:
    run_id = waiting(crew)
    new = waits_then_acts("2", "new")
    pin(run_id, new, reason="v1 is wrong")
    run = Run.objects.get(id=run_id)
    assert (run.release_id, run.status, run.reason) == (new.release_id, "queued", "pinned to patient@2")
    entry = entries_of(run_id)[-1]
    assert (entry.kind, entry.actor) == ("PIN", "olga") and entry.body["reason"] == "v1 is wrong"
    assert crew.drive(run_id).status == "waiting", "it waits for the same signal still"
    signal_run(run_id=run_id, name="go", actor="olga")
    run = crew.drive(run_id)
    assert (run.status, ACTED, state(run_id).done) == ("done", ["new"], {"result": "new"})


def test_a_message_of_before_is_left_alone(crew: Crew) -> None:
    run_id = waiting(crew)
    old = agent_of(run_id)
    pin(run_id, waits_then_acts("2", "new"))
    before = Run.objects.values().get(id=run_id)
    assert crew.hire().advance(run_id, old.release_id) is None
    assert Run.objects.values().get(id=run_id) == before


def test_a_claim_under_the_old_release_says_that_it_is_pinned_elsewhere(crew: Crew) -> None:
    run_id = waiting(crew)
    old = agent_of(run_id)
    pin(run_id, waits_then_acts("2", "new"))
    worker = crew.hire()
    assert worker.session.id is not None
    with worker.connections.connection() as conn:
        answer, _ = claim(conn, worker.session.id, run_id, old.release_id, True, None, False)
    assert answer == "pinned elsewhere"


def test_a_slice_that_finds_another_pin_in_the_journal_lets_the_run_go_to_that_release(crew: Crew) -> None:
    """As after a row that was restored from before the PIN: the journal is right, the row follows."""
    run_id = waiting(crew)
    old, new = agent_of(run_id), waits_then_acts("2", "new")
    lock_head(run_id)
    append_person(run_id, [Draft(Kind.PIN, {"release": new.release_id})], request_id=None, actor="olga")
    signal_run(run_id=run_id, name="go", actor="olga")
    crew.messages.clear()
    park = crew.hire().advance(run_id, old.release_id)
    assert park is not None and (park.status, park.release) == ("queued", new.release_id)
    run = Run.objects.get(id=run_id)
    assert (run.release_id, run.status, run.session) == (new.release_id, "queued", None)
    assert list(crew.messages) == [(run_id, new.release_id)] and ACTED == []
    assert crew.drive(run_id).status == "done" and ACTED == ["new"]


def test_a_pin_that_comes_while_a_call_is_under_way_keeps_its_outcome_and_moves_the_run_then(crew: Crew) -> None:
    """No command writes that; a worker whose session was ended meanwhile can meet it."""
    made: dict[str, Agent] = {}

    @tool(effect="keyed")
    def pinned_meanwhile(ctx: ToolContext) -> str:
        lock_head(ctx.run_id)
        body = {"release": made["2"].release_id}
        append_person(ctx.run_id, [Draft(Kind.PIN, body)], request_id=None, actor="olga")
        connection.close()
        return "old"

    for version, word in (("1", "old"), ("2", "new")):
        act = acts(word)

        def two(run: RunView, act: Any = act) -> Moves:
            return [(yield Call(pinned_meanwhile)), (yield Call(act))]

        made[version] = serve_also(flow(name="two", version=version, tools=[pinned_meanwhile, act])(two))
    run_id = start("two", release="1")
    park = crew.hire().advance(run_id, made["1"].release_id)
    assert park is not None and park.release == made["2"].release_id and ACTED == []
    assert [e.body["result"] for e in entries_of(run_id) if e.kind == "OBS"] == ["old"]
    assert crew.drive(run_id).status == "done" and state(run_id).done == {"result": ["old", "new"]}


def decides(version: str, counted: list[str]) -> Agent:
    def decide(view: RunView) -> Any:
        counted.append(version)
        return Finish() if view.signals else WaitFor("go")

    return serve_also(Agent("decides", version, (), decide))


@pytest.mark.parametrize("code", ["of the judge", "another", "unknown"])
def test_what_another_code_has_judged_is_decided_again_at_the_claim(crew: Crew, code: str) -> None:
    counted: list[str] = []
    decides("1", counted)
    run_id = start("decides")
    crew.drive(run_id)
    new = decides("2", counted)
    told = {"of the judge": {"code": new.code_digest}, "another": {"code": "f" * 64}, "unknown": {}}[code]
    pin(run_id, new, **told)
    assert state(run_id).code == told.get("code", "")
    counted.clear()
    assert crew.drive(run_id).status == "waiting"
    assert counted == ([] if code == "of the judge" else ["2"])


def test_what_it_would_decide_otherwise_stops_it_before_any_effect(crew: Crew) -> None:
    """Nobody has judged it: the last word is the worker's."""
    run_id = waiting(crew)

    @flow(name="patient", version="2")
    def hasty(run: RunView) -> Moves:
        yield Sleep(3600)

    pin(run_id, serve_also(hasty))
    run = crew.drive(run_id)
    assert run.status == "held" and run.reason.startswith("diverged: entry 3"), run.reason


def test_an_approval_of_before_is_not_valid_and_is_asked_for_anew(crew: Crew) -> None:
    act = acts("old", approval=True)

    @flow(name="approves", version="1", tools=[act])
    def approves(run: RunView) -> Moves:
        return (yield Call(act))

    serve_also(approves)
    run_id = start("approves")
    assert crew.drive(run_id).status == "awaiting_approval"
    pin(run_id, next_version(run_id))
    slot = state(run_id).slots[1]
    assert slot.approval is not None
    given = {"run_id": run_id, "actor": "ada", "verdict": "approve", "note": "", "groups": APPROVERS}
    decide_approval(seq=slot.seq, digest=slot.approval.digest, **given)  # before any worker has looked
    run = crew.drive(run_id)
    assert run.status == "awaiting_approval" and "pinned to another release" in run.reason and ACTED == []
    asked = state(run_id).slots[1].approval
    assert asked is not None and asked.release == agent_of(run_id).release_id
    decide_approval(seq=slot.seq, digest=asked.digest, **given)
    assert crew.drive(run_id).status == "done" and ACTED == ["old"]


def test_a_sleep_ends_when_it_would_have_ended(crew: Crew) -> None:
    @flow(name="sleeps", version="1")
    def sleeps(run: RunView) -> Moves:
        yield Sleep(3600)

    serve_also(sleeps)
    run_id = start("sleeps")
    due = crew.advance(run_id).wake_at
    pin(run_id, next_version(run_id))
    run = crew.advance(run_id)
    assert (run.status, run.wake_at) == ("waiting", due)


def test_what_holds_it_goes_on_holding_it_and_a_gate_of_the_old_release_does_not(crew: Crew) -> None:
    run_id = waiting(crew)
    hold_run(run_id=run_id, reason="let me look", actor="olga")
    before = Run.objects.get(id=run_id)
    pin(run_id, waits_then_acts("2", "new"))
    run = Run.objects.get(id=run_id)
    assert (run.status, run.reason, run.since) == ("held", "held by olga: let me look", before.since)
    resume_run(run_id=run_id, reason="looked", actor="olga")
    assert crew.drive(run_id).status == "waiting"

    gate = place_gate(scope="release:patient@2", reason="wrong", actor="olga")
    signal_run(run_id=run_id, name="go", actor="olga")
    crew.lose(crew.standing)  # type: ignore[arg-type]
    crew.standing = None
    kept = crew.advance(run_id)
    assert (kept.status, kept.reason) == ("queued", "gate release:patient@2: wrong")
    pin(run_id, waits_then_acts("3", "newest"))
    assert crew.drive(run_id).status == "done" and ACTED == ["newest"]
    lift_gate(gate_id=gate.pk, reason="seen", actor="olga")


def limited(version: str, limit: Limit | int | None) -> Agent:
    act = acts(version, limit=limit) if limit else acts(version)

    @flow(name="limited", version=version, tools=[act])
    def one(run: RunView) -> Moves:
        return (yield Call(act))

    return serve_also(one)


def test_its_place_in_line_is_given_up_and_who_stood_behind_it_moves_up(crew: Crew) -> None:
    limited("1", 1)
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO runs_throttle (scope, key) VALUES ('tool:act', '')")
        cursor.execute(
            "INSERT INTO runs_permit (run_id, step, attempt, scope, key, at_once, granted_at, taken)"
            " VALUES ('00000000-0000-0000-0000-000000000001', 1, 1, 'tool:act', '', 1, now(), true)"
        )
    first, second = start("limited"), start("limited")
    assert [crew.drive(run_id).status for run_id in (first, second)] == ["waiting", "waiting"]
    pin(first, limited("2", None))
    assert not Permit.objects.filter(run=first).exists() and Permit.objects.filter(run=second).exists()
    assert crew.drive(first).status == "done" and ACTED == ["2"]


def test_a_place_among_the_runs_in_flight_is_asked_for_under_the_new_release(crew: Crew) -> None:
    """The old release is limited, the new one is not."""
    act = acts("any")

    def one(run: RunView) -> Moves:
        return (yield Call(act))

    def of(version: str, limit: int | None) -> Agent:
        return serve_also(flow(name="crowded", version=version, tools=[act], limit=limit)(one))

    of("1", 1)
    run_id = start("crowded")
    Run.objects.filter(id=run_id).update(over_limit=True, reason="crowded is limited to 1 at once")
    pin(run_id, of("2", None))
    assert Run.objects.get(id=run_id).over_limit is False
    assert crew.drive(run_id).status == "done"


def test_the_label_that_the_new_release_declares_unique_is_taken_or_refuses_the_move(crew: Crew) -> None:
    run_id = waiting(crew, labels={"order": "o-1"})
    new = waits_then_acts("2", "new", unique="order")
    other = start("patient", labels={"order": "o-1"}, release="2")
    with pytest.raises(BusinessIdTaken, match=str(other)):
        pin(run_id, new)
    assert "PIN" not in journal(run_id) and Run.objects.get(id=run_id).business_id is None
    signal_run(run_id=other, name="go", actor="olga")
    crew.drive(other)
    pin(run_id, new)
    assert Run.objects.get(id=run_id).business_id == "order:o-1"


def test_children_keep_their_own_pins(crew: Crew) -> None:
    waits_then_acts("1", "child")

    @flow(name="family", version="1")
    def family(run: RunView) -> Moves:
        return (yield Spawn("patient", None))

    serve_also(family)
    run_id = start("family")
    crew.drive_tree(run_id)
    child = Run.objects.get(parent=run_id)
    pin(run_id, next_version(run_id))
    crew.drive(run_id)
    assert Run.objects.get(id=child.id).release_id == child.release_id
    signal_run(run_id=child.id, name="go", actor="olga")
    crew.drive_tree(run_id)
    assert state(run_id).done == {"result": "child"}


def test_who_wants_the_run_moved_in_a_transaction_that_fails_has_moved_nothing(crew: Crew) -> None:
    run_id = waiting(crew)
    new = announce_one(waits_then_acts("2", "new"), serving=False)
    crew.messages.clear()
    with pytest.raises(KeyError), locked_run(run_id) as held:
        move_run(held, new, {"reason": "a test"}, "olga")
        raise KeyError
    assert "PIN" not in journal(run_id) and Run.objects.get(id=run_id).release_id != new.id
    assert not crew.messages
