"""Approve and deny: one decision, bound to the digest of what will run."""

import pytest

from runs.approvals import decide_approval
from runs.errors import AlreadyDecided, DigestMismatch, DigestMissing, IntentNotFound, NotAwaitingApproval
from runs.models import Run
from runs.queries import entries_of, list_intents
from runs.registry import agents
from tests.rig.crew import Crew, journal, start, state
from tests.rig.ledger import Ledger
from tests.rig.robot import APPROVERS


def awaiting(crew: Crew, effect: str = "keyed") -> tuple[Run, int, str]:
    run_id = start("approval", {"effect": effect})
    run = crew.drive(run_id)
    assert run.status == "awaiting_approval"
    (intent,) = [view for view in list_intents(state="awaiting_approval")[0] if view.run_id == run_id]
    return run, intent.seq, intent.digest


def test_an_approved_call_is_sent_once_after_its_attempt(crew: Crew, ledger: Ledger) -> None:
    run, seq, digest = awaiting(crew)
    assert ledger.acted(f"{run.id}:1") == 0, "nothing is sent before somebody approves"
    decide_approval(
        run_id=run.id, seq=seq, verdict="approve", digest=digest, note="fine", actor="ada", groups=APPROVERS
    )
    assert crew.drive(run.id).status == "done"
    kinds = ["START", "PLAN", "TOOL_CALL:1", "APPROVAL:1", "APPROVAL:1", "ATTEMPT:1", "OBS:1", "DONE"]
    assert journal(run.id) == kinds
    granted = entries_of(run.id)[4]
    assert (granted.actor, granted.body["verdict"], granted.body["digest"]) == ("ada", "granted", digest)
    assert entries_of(run.id)[5].body == {"attempt": 1, "source": "approval", "digest": digest}
    assert ledger.acted(f"{run.id}:1") == 1


def test_a_denied_call_is_never_sent_and_the_flow_hears_why(crew: Crew, ledger: Ledger) -> None:
    run, seq, digest = awaiting(crew)
    decide_approval(
        run_id=run.id, seq=seq, verdict="deny", digest=digest, note="too much", actor="ada", groups=APPROVERS
    )
    assert crew.drive(run.id).status == "done"
    assert entries_of(run.id)[-1].body == {"result": {"outcome": "denied", "why": "too much"}}
    assert ledger.acted(f"{run.id}:1") == 0


def test_a_second_decision_hears_who_decided_first(crew: Crew, ledger: Ledger) -> None:
    run, seq, digest = awaiting(crew)
    decide_approval(run_id=run.id, seq=seq, verdict="deny", digest=digest, note="no", actor="ada", groups=APPROVERS)
    with pytest.raises(AlreadyDecided) as refused:
        decide_approval(
            run_id=run.id, seq=seq, verdict="approve", digest=digest, note="", actor="max", groups=APPROVERS
        )
    assert (refused.value.actor, refused.value.verdict) == ("ada", "denied")


def test_a_decision_needs_the_digest_that_was_shown(crew: Crew, ledger: Ledger) -> None:
    run, seq, digest = awaiting(crew)
    for given, error in (("", DigestMissing), ("0" * 64, DigestMismatch)):
        with pytest.raises(error):
            decide_approval(
                run_id=run.id, seq=seq, verdict="approve", digest=given, note="", actor="ada", groups=APPROVERS
            )
    with pytest.raises(IntentNotFound):
        decide_approval(
            run_id=run.id, seq=seq + 1, verdict="approve", digest=digest, note="", actor="ada", groups=APPROVERS
        )
    assert state(run.id).slots[1].state == "awaiting_approval"


def test_an_intent_without_approval_is_not_decided(crew: Crew, ledger: Ledger) -> None:
    run_id = start("keyed", {})
    worker = crew.hire()
    ledger.fault("charge", "rate_limit", times=1, retry_after=60)
    worker.advance(run_id, Run.objects.get(id=run_id).release_id)
    slot = state(run_id).slots[1]
    with pytest.raises(NotAwaitingApproval):
        decide_approval(
            run_id=run_id, seq=slot.seq, verdict="approve", digest=slot.digest, note="", actor="ada", groups=APPROVERS
        )


def test_a_tool_that_changed_after_the_approval_is_asked_for_again(
    crew: Crew, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, seq, digest = awaiting(crew)
    decide_approval(run_id=run.id, seq=seq, verdict="approve", digest=digest, note="", actor="ada", groups=APPROVERS)
    agent = agents()[run.release_id]
    monkeypatch.setattr(agent.toolbox["gated_charge"], "digest", b"other code")
    assert crew.drive(run.id).status == "awaiting_approval"
    assert ledger.acted(f"{run.id}:1") == 0
    (intent,) = list_intents(state="awaiting_approval")[0]
    assert intent.digest != digest
    decide_approval(
        run_id=run.id, seq=seq, verdict="approve", digest=intent.digest, note="", actor="ada", groups=APPROVERS
    )
    assert crew.drive(run.id).status == "done"
    assert ledger.acted(f"{run.id}:1") == 1


def test_a_settled_sibling_is_not_called_again_when_the_other_is_approved(crew: Crew, ledger: Ledger) -> None:
    run_id = start("mixed", {})
    worker = crew.hire()
    assert crew.drive(run_id, worker).status == "awaiting_approval"
    crew.lose(worker)
    slot = state(run_id).slots[2]
    decide_approval(
        run_id=run_id, seq=slot.seq, verdict="approve", digest=slot.digest, note="", actor="ada", groups=APPROVERS
    )
    assert crew.drive(run_id).status == "done"
    assert [ledger.acted(f"{run_id}:{step}") for step in (1, 2)] == [1, 1]
