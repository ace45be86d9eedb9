"""Forks with a person's values in place of what was recorded, and forks under another release."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest

from journal.encoding import canonical
from journal.payloads import payload_store
from journal.verify import verify_run
from recovery import pins, replays
from recovery.errors import ForkDiverges, ForkEditRefused, NotJudgedYet
from recovery.forking import differs
from recovery.models import Replay
from recovery.replay_work import carry_out
from runs.commands import answer_ask, signal_run
from runs.errors import ReleaseUnserved
from runs.models import Run
from runs.queries import entries_of, state_of
from tests.recovery.test_fork import fork
from tests.rig.crew import Crew, journal, start
from tests.rig.ledger import Ledger
from tests.rig.versions import judges_at_once, next_version, serving

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def judges(crew: Crew, monkeypatch: pytest.MonkeyPatch) -> Iterator[Crew]:
    """A crew of which one worker judges at once what is ordered."""
    worker = crew.standing = crew.hire()
    judges_at_once(worker, monkeypatch)
    yield crew


def asked(crew: Crew, amount: int = 5) -> UUID:
    """A run that was answered and has charged that much: START PLAN ASK ANSWER PLAN TOOL_CALL OBS DONE."""
    run_id = start("asks", {})
    crew.drive(run_id)
    answer_ask(run_id=run_id, seq=3, value=amount, actor="olga")
    assert crew.drive(run_id).status == "done"
    return run_id


def edited(run_id: UUID, seq: int) -> Any:
    return entries_of(run_id)[seq - 1].body.get("edited_at_fork")


def digest(value: Any) -> str:
    return hashlib.sha256(canonical(value)).hexdigest()


def test_an_answer_is_edited_and_the_fork_goes_on_from_it(judges: Crew, ledger: Ledger) -> None:
    run_id = asked(judges)
    forked = fork(run_id, 4, edits=[{"seq": 4, "value": 7}])
    assert edited(forked.id, 4) == {"by": "olga", "from_digest": digest(5)}
    assert judges.drive(forked.id).status == "done"  # another amount is no call of its source
    call = state_of(forked.id).slots[2]
    assert call.args == {"amount_cents": 7} and ledger.acted(call.key) == 1
    assert verify_run(forked.id) == []
    start_body = entries_of(forked.id)[0].body
    assert start_body["fork"]["edits"] == [{"seq": 4, "from_digest": digest(5)}]


def test_an_input_is_edited_if_the_agent_still_decides_the_same(judges: Crew, ledger: Ledger) -> None:
    run_id = start("chain", {"steps": 2, "effect": "keyed"})
    assert judges.drive(run_id).status == "done"
    at = journal(run_id).index("OBS:1") + 1
    with pytest.raises(ForkDiverges) as refused:
        fork(run_id, at, edits=[{"seq": 1, "value": {"steps": 2, "effect": "probed"}}])
    assert refused.value.seq == 3 and str(refused.value).count("Entry 3") == 1 and ".." not in str(refused.value)
    assert not Run.objects.filter(forked_from=run_id).exists()
    assert Run.objects.get(id=run_id).lineage is None
    forked = fork(run_id, at, edits=[{"seq": 1, "value": {"steps": 1, "effect": "keyed"}}])
    assert judges.drive(forked.id).status == "done" and len(state_of(forked.id).slots) == 1


def test_what_cannot_be_edited_is_refused_by_field(judges: Crew, ledger: Ledger) -> None:
    run_id = asked(judges)
    for edits, said in (
        ([{"seq": 4, "value": "seven"}], "edits.0"),
        ([{"seq": 2, "value": []}], "nothing can be edited"),
        ([{"seq": 9, "value": 1}], "no such entry"),
        ([{"seq": 4, "value": 1}, {"seq": 4, "value": 2}], "edits.1: It is edited twice."),
    ):
        with pytest.raises(ForkEditRefused) as refused:
            fork(run_id, 4, edits=edits)
        assert said in str(refused.value)


def test_a_signals_payload_is_edited_and_a_large_one_goes_beside_the_journal(judges: Crew, ledger: Ledger) -> None:
    run_id = start("signals", {"names": ["go"]})
    judges.drive(run_id)
    signal_run(run_id=run_id, name="go", payload="old", signal_id="once", actor="olga")
    at = journal(run_id).index("SIGNAL") + 1
    large = "x" * 50_000
    forked = fork(run_id, at, edits=[{"seq": at, "value": large}])
    assert judges.drive(forked.id).status == "done"
    assert verify_run(forked.id) == []
    pointer = entries_of(forked.id)[at - 1].body["payload"]
    assert str(forked.id) in pointer.uri and payload_store().load(pointer) == large
    # The same signal again is the one that it has already.
    with pytest.raises(Exception, match="another payload"):
        signal_run(run_id=forked.id, name="go", payload="old", signal_id="once", actor="olga")


def test_a_fork_goes_on_under_another_release_that_decides_the_same(judges: Crew, ledger: Ledger) -> None:
    run_id = asked(judges)
    newer = next_version(run_id)
    with pytest.raises(ReleaseUnserved):
        fork(run_id, 4, release="2")
    assert judges.standing is not None
    serving(judges.standing, newer)
    forked = fork(run_id, 4, release="2")
    pinned = entries_of(forked.id)[4]
    assert (pinned.kind, pinned.actor, pinned.body["release"], pinned.body["verdict"]) == (
        "PIN", "olga", newer.release_id, "same",
    )  # fmt: skip
    assert forked.release_id == newer.release_id and state_of(forked.id).release_id == newer.release_id
    assert judges.drive(forked.id).status == "awaiting_approval"  # the same amount as its source has charged


def test_the_same_question_is_asked_once_and_its_answer_is_taken_when_it_comes(
    judges: Crew, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = asked(judges)
    monkeypatch.setattr(replays, "send", lambda replay_id, release_id: True)  # its worker is slow
    monkeypatch.setattr(pins, "WAIT", 0.0)
    for _ in range(2):
        with pytest.raises(NotJudgedYet):
            fork(run_id, 4, edits=[{"seq": 4, "value": 7}])
    (question,) = Replay.objects.all()
    with pytest.raises(NotJudgedYet):
        fork(run_id, 4, edits=[{"seq": 4, "value": 8}])
    assert Replay.objects.count() == 2
    assert judges.standing is not None
    carry_out(judges.standing, question.pk)
    assert fork(run_id, 4, edits=[{"seq": 4, "value": 7}]).forked_at == 4
    assert Replay.objects.count() == 2


def test_only_what_refuses_a_fork_is_told_as_its_reason() -> None:
    words = {"seq": 2, "kind": "text", "effect": False, "says": "The same moves; the thought differs."}
    gate = {"seq": 3, "kind": "gate", "effect": True, "says": "pay: it waited for approval by ada."}
    other = {"seq": 6, "kind": "arguments", "effect": True, "says": "a call of pay: args.cents differs."}
    found = Replay(pk=7, verdict="diverged", error="", result={"first": 6, "divergences": [words, gate, other]})
    assert str(differs(found)).endswith("nothing was written. Entry 6: a call of pay: args.cents differs.")
