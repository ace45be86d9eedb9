"""Who may decide, and how many it takes: group, quorum, four eyes."""

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection

from runs.errors import AlreadyDecided, FourEyes, NoQuestionOpen, NotYourApproval, QuestionOpen, ReasonMissing
from runs.models import Run
from runs.starting import start_run
from tests.rig.crew import Crew, state
from tests.rig.ledger import Ledger
from tests.runs.policing import asks, edit, listed, reply, result, say, the_slot, verdicts
from tests.runs.policing import desk as desk


def test_the_decision_is_the_one_that_completes_the_quorum(desk: Crew, ledger: Ledger) -> None:
    run_id = asks(desk, quorum=2)
    waiting = say(run_id, actor="ada")
    assert waiting.status == "awaiting_approval" and "1 of 2 have approved" in waiting.reason, "nobody is woken for it"
    assert listed(run_id)["granted"] == ["ada"] and the_slot(run_id).state == "awaiting_approval"
    assert say(run_id, actor="max").status == "queued"
    assert desk.drive(run_id).status == "done"
    assert ledger.acted(f"{run_id}:1") == 1
    assert verdicts(run_id) == ["requested", "granted", "granted"]


def test_one_person_is_one_voice(desk: Crew, ledger: Ledger) -> None:
    run_id = asks(desk, quorum=2)
    say(run_id, actor="ada")
    with pytest.raises(AlreadyDecided) as again:
        say(run_id, actor="ada")
    assert (again.value.actor, again.value.verdict) == ("ada", "granted")
    assert verdicts(run_id) == ["requested", "granted"]


def test_one_denial_is_enough_also_by_who_had_approved(desk: Crew, ledger: Ledger) -> None:
    run_id = asks(desk, quorum=3)
    say(run_id, actor="ada")
    say(run_id, "deny", "ada", note="I looked again")
    assert desk.drive(run_id).status == "done"
    assert result(run_id)["outcome"] == "denied" and result(run_id)["why"] == "I looked again"
    assert ledger.acted(f"{run_id}:1") == 0
    with pytest.raises(AlreadyDecided) as late:
        say(run_id, actor="max")
    assert (late.value.actor, late.value.verdict) == ("ada", "denied")


def test_members_of_the_group_decide_and_admins(desk: Crew, ledger: Ledger) -> None:
    run_id = asks(desk, group="finance")
    for verdict in ("approve", "deny", "ask"):
        with pytest.raises(NotYourApproval, match="finance"):
            say(run_id, verdict)
    with pytest.raises(NotYourApproval):
        edit(run_id)
    say(run_id, "ask", "max", groups=frozenset({"admin"}))
    reply(run_id)
    say(run_id, actor="fay", groups=frozenset({"finance"}))
    assert desk.drive(run_id).status == "done"


def test_who_started_the_run_does_not_approve_its_calls(desk: Crew, ledger: Ledger) -> None:
    run, _ = start_run(agent="pays", input={"amount_cents": 2, "policy": {"four_eyes": True}}, actor="ada")
    desk.drive(run.id)
    with pytest.raises(FourEyes, match="ada started this run"):
        say(run.id, actor="ada")
    with pytest.raises(FourEyes):
        say(run.id, actor="ada", groups=frozenset({"admin"}))
    say(run.id, actor="max")
    assert desk.drive(run.id).status == "done"


def test_who_started_the_run_may_reject_its_calls(desk: Crew, ledger: Ledger) -> None:
    run, _ = start_run(agent="pays", input={"amount_cents": 2, "policy": {"four_eyes": True}}, actor="ada")
    desk.drive(run.id)
    say(run.id, "deny", "ada", note="a mistake of mine")
    assert desk.drive(run.id).status == "done" and ledger.acted(f"{run.id}:1") == 0


def test_who_started_the_tree_does_not_approve_in_its_children(desk: Crew, ledger: Ledger) -> None:
    root, _ = start_run(agent="has-a-payer", input={"amount_cents": 2, "policy": {"four_eyes": True}}, actor="ada")
    desk.drive_tree(root.id)
    child = Run.objects.get(parent=root).id
    assert listed(child)["asked_by"] == "ada"
    with pytest.raises(FourEyes):
        say(child, actor="ada")
    say(child, actor="max")
    assert desk.drive_tree(root.id).status == "done"


def test_without_four_eyes_who_started_it_may_approve(desk: Crew, ledger: Ledger) -> None:
    for policy in ({"four_eyes": False}, None):
        run, _ = start_run(agent="pays", input={"amount_cents": 2, "policy": policy}, actor="ada")
        desk.drive(run.id)
        say(run.id, actor="ada")
        assert desk.drive(run.id).status == "done"


def test_a_question_parks_the_item_until_it_is_answered(desk: Crew, ledger: Ledger) -> None:
    run_id = asks(desk, quorum=2)
    say(run_id, actor="ada")
    with pytest.raises(ReasonMissing):
        say(run_id, "ask", "max", note=" ")
    asked = say(run_id, "ask", "max", note="Whose order is it?")
    assert asked.status == "awaiting_approval" and "max asks something first" in asked.reason
    assert listed(run_id)["question"] == {"by": "max", "text": "Whose order is it?", "seq": state(run_id).seq}
    for verdict in ("approve", "ask"):
        with pytest.raises(QuestionOpen) as refused:
            say(run_id, verdict, "max")
        assert refused.value.question == "Whose order is it?"
    with pytest.raises(QuestionOpen):
        edit(run_id, "max", amount_cents=2)
    with pytest.raises(ReasonMissing):
        reply(run_id, " ")
    reply(run_id, "Lena's")
    assert listed(run_id)["question"] is None and listed(run_id)["granted"] == ["ada"], "what was granted stays"
    with pytest.raises(NoQuestionOpen):
        reply(run_id, "again")
    say(run_id, actor="max")
    assert desk.drive(run_id).status == "done"
    assert verdicts(run_id) == ["requested", "granted", "asked", "answered", "granted"]


def test_what_is_asked_about_can_still_be_rejected(desk: Crew, ledger: Ledger) -> None:
    run_id = asks(desk)
    say(run_id, "ask", note="Why?")
    say(run_id, "deny", "max", note="no")
    assert desk.drive(run_id).status == "done" and result(run_id)["outcome"] == "denied"
    with pytest.raises(NoQuestionOpen):
        reply(asks(desk))


@pytest.mark.django_db(transaction=True)
def test_of_many_at_once_each_person_counts_once(desk: Crew, ledger: Ledger) -> None:
    """Twenty approvals by two people and one rejection, of a call that two have to agree to."""
    run_id = asks(desk, quorum=2)
    slot, barrier, said = the_slot(run_id), threading.Barrier(21), Counter[str]()

    def one(n: int) -> str:
        barrier.wait(60)
        try:
            verdict, actor = ("deny", "mia") if n == 20 else ("approve", ("ada", "max")[n % 2])
            say(run_id, verdict, actor, digest=slot.digest)
            return f"{verdict} {actor}"
        except AlreadyDecided as late:
            assert late.actor in ("ada", "max", "mia") and late.verdict in ("granted", "denied")
            return "late"
        finally:
            connection.close()

    with ThreadPoolExecutor(21) as pool:
        said.update(pool.map(one, range(21)))
    written = verdicts(run_id)[1:]
    assert sum(said.values()) == 21 and said["late"] == 21 - len(written)
    if "denied" in written:
        assert written.index("denied") == len(written) - 1 and len(written) <= 2
    else:
        assert written == ["granted", "granted"]
    assert desk.drive(run_id).status == "done"
    assert ledger.acted(f"{run_id}:1") == (0 if "denied" in written else 1)
