"""A person changes the arguments: the same intent and step, all approvals void, and everybody can see that."""

from typing import Any

import pytest

from journal.entries import Kind
from journal.payloads import Pointer
from runs.errors import AlreadyDecided, DigestMismatch, EditInvalid, EditTooLate, FourEyes
from runs.models import Run
from runs.queries import entries_of
from runs.registry import agents
from runs.testing.golden import redecide
from tests.rig.crew import Crew, journal, start, state
from tests.rig.ledger import Ledger
from tests.runs.policing import approvals, asks, edit, listed, result, say, sent, the_slot, verdicts
from tests.runs.policing import desk as desk


def test_the_edited_arguments_are_asked_for_anew_and_are_what_is_sent(desk: Crew, ledger: Ledger) -> None:
    run_id = asks(desk)
    before = the_slot(run_id)
    assert edit(run_id, amount_cents=200).status == "queued"
    assert desk.drive(run_id).status == "awaiting_approval" and sent(ledger, run_id) == []
    slot = the_slot(run_id)
    assert (slot.seq, slot.step, slot.key) == (before.seq, before.step, before.key)
    assert slot.approval and slot.approval.digest != before.digest and slot.approval.why == "ada changed the arguments"
    assert listed(run_id)["summary"] == "Charge 200 cents"
    say(run_id, actor="max")
    assert desk.drive(run_id).status == "done"
    assert sent(ledger, run_id) == [200]
    kinds = ["START", "PLAN", "TOOL_CALL:1", "APPROVAL:1", "APPROVAL:1", "APPROVAL:1", "APPROVAL:1", "ATTEMPT:1",
             "OBS:1", "DONE"]  # fmt: skip
    assert journal(run_id) == kinds
    assert verdicts(run_id) == ["requested", "edited", "requested", "granted"]


def test_the_agent_s_call_stays_and_its_result_says_who_changed_it(desk: Crew, ledger: Ledger) -> None:
    run_id = asks(desk)
    edit(run_id, amount_cents=200)
    desk.drive(run_id)
    say(run_id, actor="max")
    desk.drive(run_id)
    entries = {entry.kind: entry for entry in entries_of(run_id)}
    assert entries[Kind.TOOL_CALL].body["args"]["amount_cents"] == 400
    edited = entries[Kind.OBS].body["edited"]
    assert edited == {"by": "ada", "args": {"amount_cents": 200, "policy": None}}
    assert result(run_id) == {"outcome": "succeeded", "why": "", "edited_by": "ada", "amount_cents": 200}
    slot = state(run_id).slots[1]
    assert slot.args["amount_cents"] == 200 and slot.asked_args["amount_cents"] == 400
    assert entries[Kind.ATTEMPT].body["digest"] == approvals(run_id)[-1].body["digest"]


def test_an_edited_call_that_is_denied_says_so_to_the_agent(desk: Crew, ledger: Ledger) -> None:
    run_id = asks(desk)
    edit(run_id, amount_cents=200)
    desk.drive(run_id)
    say(run_id, "deny", "max", note="not at all")
    desk.drive(run_id)
    assert result(run_id)["edited"]["by"] == "ada" and result(run_id)["outcome"] == "denied"


def test_an_edit_voids_what_was_granted(desk: Crew, ledger: Ledger) -> None:
    run_id = asks(desk, quorum=2, four_eyes=False)
    say(run_id, actor="max")
    edit(run_id, "ada", amount_cents=200)
    with pytest.raises(AlreadyDecided) as late:
        say(run_id, actor="mia")
    assert late.value.verdict == "edited"
    desk.drive(run_id)
    assert listed(run_id)["granted"] == []
    say(run_id, actor="max")
    say(run_id, actor="ada")
    assert desk.drive(run_id).status == "done"


def test_who_changed_it_does_not_approve_it_under_four_eyes(desk: Crew, ledger: Ledger) -> None:
    run_id = asks(desk, four_eyes=True)
    edit(run_id, "ada", amount_cents=200)
    desk.drive(run_id)
    edit(run_id, "max", amount_cents=202)
    desk.drive(run_id)
    for editor in ("ada", "max"):
        with pytest.raises(FourEyes, match=f"{editor} changed the arguments"):
            say(run_id, actor=editor)
    say(run_id, actor="mia")
    desk.drive(run_id)
    assert sent(ledger, run_id) == [202]


def test_the_old_digest_approves_nothing_after_an_edit(desk: Crew, ledger: Ledger) -> None:
    run_id = asks(desk)
    old = the_slot(run_id).digest
    edit(run_id, amount_cents=200)
    desk.drive(run_id)
    with pytest.raises(DigestMismatch):
        say(run_id, actor="max", digest=old)
    assert sent(ledger, run_id) == []


@pytest.mark.parametrize(
    ("args", "field"),
    [
        (None, "args"),
        ({}, "args.amount_cents"),
        ({"amount_cents": "2"}, "args.amount_cents"),
        ({"amount_cents": 2, "to": "me"}, "args.to"),
        ({"amount_cents": 2, "memo": {1}}, "args"),
    ],
)
def test_what_the_tool_s_schema_refuses_is_not_written(desk: Crew, ledger: Ledger, args: Any, field: str) -> None:
    run_id = asks(desk)
    with pytest.raises(EditInvalid) as refused:
        say(run_id, "edit", args=args)
    assert refused.value.errors[0]["field"].startswith(field)
    assert verdicts(run_id) == ["requested"]


def test_what_only_the_tool_s_code_refuses_is_dropped_and_said(desk: Crew, ledger: Ledger) -> None:
    """The web process judges by the schema alone; the worker has the type."""
    run_id = asks(desk)
    edit(run_id, amount_cents=201)
    assert desk.drive(run_id).status == "awaiting_approval"
    slot = the_slot(run_id)
    assert slot.args["amount_cents"] == 400 and slot.edited is None
    assert slot.approval and "an odd amount" in slot.approval.why and "the agent's own" in slot.approval.why
    say(run_id, actor="max")
    desk.drive(run_id)
    assert sent(ledger, run_id) == [400]


def test_what_was_sent_once_cannot_be_changed(desk: Crew, ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger.fault("charge", "rate_limit", times=1, retry_after=0)
    run_id = asks(desk)
    say(run_id)
    worker = desk.hire()
    run = Run.objects.get(id=run_id)
    worker.advance(run_id, run.release_id)
    monkeypatch.setattr(agents()[run.release_id].toolbox["pay"], "digest", b"other code")
    assert desk.drive(run_id).status == "awaiting_approval", "another tool than was approved: asked for anew"
    with pytest.raises(EditTooLate):
        edit(run_id, amount_cents=200)
    say(run_id, actor="max")
    assert desk.drive(run_id).status == "done" and ledger.acted(f"{run_id}:1") == 1


@pytest.mark.parametrize("agent", ["pays", "pays-twice"])
def test_a_changed_call_is_decided_again_as_the_agent_decided_it(desk: Crew, ledger: Ledger, agent: str) -> None:
    run_id = asks(desk, agent)
    edit(run_id, amount_cents=200)
    while desk.drive(run_id).status == "awaiting_approval":
        say(run_id, actor="max")
    own = next(each for each in agents().values() if each.name == agent)
    assert redecide(own, entries_of(run_id)) is None
    if agent == "pays-twice":
        assert result(run_id) == [200, 200], "the agent sees what was really sent"


def test_large_arguments_are_kept_beside_the_journal_and_sent_whole(desk: Crew, ledger: Ledger) -> None:
    run_id = asks(desk)
    edit(run_id, memo="m" * 200_000)
    assert isinstance(approvals(run_id)[1].body["args"], Pointer)
    desk.drive(run_id)
    say(run_id, actor="max")
    assert desk.drive(run_id).status == "done" and sent(ledger, run_id) == [400]


def test_an_edit_changes_its_own_call_only(desk: Crew, ledger: Ledger) -> None:
    run_id = start("pays-side-by-side", {"amounts": [2, 4], "policy": None})
    desk.drive(run_id)
    edit(run_id, amount_cents=8)
    desk.drive(run_id)
    one, other = state(run_id).unsettled()
    assert (one.args["amount_cents"], other.args["amount_cents"]) == (8, 4)
    assert other.approval and other.approval.requested_seq < (one.approval.requested_seq if one.approval else 0)
    for _ in range(2):
        say(run_id, actor="max")
    assert desk.drive(run_id).status == "done" and result(run_id) == [8, 4]
