"""Evidence: a result that fits, a file, an id on the other side; late results that a person adopts."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection

from journal.encoding import encode
from journal.payloads import payload_store
from journal.verify import verify_run
from recovery.commands import adopt_evidence, reconcile_intent
from recovery.errors import AlreadyReconciled, EvidenceUseless, FileTooLarge, NotInDoubt, ResultInvalid
from recovery.files import LARGEST, EvidenceFile, plain_name
from recovery.settled import FOUND, by_itself, by_people, list_settled
from runs.access import ensure_demo_users
from runs.errors import BadInput, RunEnded
from runs.models import Evidence, Run
from runs.queries import entries_of
from tests.pages.journals import Story, session
from tests.pages.waiting_items import doubtful, typed
from tests.rig.crew import Crew, start
from tests.rig.ledger import Ledger

pytestmark = pytest.mark.django_db
SEEN: dict[str, Any] = {"verdict": "happened", "evidence": "row 7", "actor": "olga"}


def viewer() -> User:
    ensure_demo_users("unused")
    return User.objects.get(username="victor")


def settle(story: Story, seq: int, **more: Any) -> Run:
    return reconcile_intent(run_id=story.run.id, seq=seq, **(SEEN | more))


def last(story: Story, kind: str) -> Any:
    return [e for e in entries_of(story.run.id) if e.kind == kind][-1]


def late(story: Story, outcome: str = "succeeded", **body: Any) -> int:
    data = encode({"outcome": outcome, "source": "worker"} | body)
    row = Evidence.objects.create(run=story.run, step=1, epoch=3, session=session("w7"), body=data, outcome=outcome)
    return int(row.pk)


def adopt(story: Story, seq: int, number: int, note: str = "the bank agrees") -> Run:
    return adopt_evidence(run_id=story.run.id, seq=seq, evidence=number, actor="olga", note=note)


@pytest.mark.parametrize("result", [{"id": "re-1"}, {"id": 7, "amount_cents": 1}, "re-1", []])
def test_a_result_that_the_tool_could_not_have_returned_is_refused(result: Any) -> None:
    story, seq = doubtful()
    typed()
    with pytest.raises(ResultInvalid) as refused:
        settle(story, seq, result=result)
    assert "result" in str(refused.value) and last(story, "OBS").settles is None


def test_a_result_that_fits_and_one_that_is_not_known_settle_it() -> None:
    for result in ({"id": "re-1", "amount_cents": 24_000}, None):
        story, seq = doubtful()
        settle(story, seq, result=result)
        assert last(story, "OBS").body == {"outcome": "succeeded", "result": result, "source": "operator"}


def test_what_a_person_changed_is_told_with_its_result() -> None:
    story, seq = doubtful()
    changed = {"order_id": "o-1", "amount_cents": 7}
    story.write("APPROVAL", {"verdict": "requested", "digest": "d"}, step=1)
    story.write("APPROVAL", {"verdict": "edited", "args": changed}, step=1, actor="ada")
    story.write("APPROVAL", {"verdict": "requested", "digest": "e"}, step=1)
    story.write("APPROVAL", {"verdict": "granted", "digest": "e"}, step=1, actor="ada")
    story.write("ATTEMPT", {"attempt": 2, "source": "approval"}, step=1)
    settle(story, seq, result=None)
    assert last(story, "OBS").body["edited"] == {"by": "ada", "args": changed}


def test_a_file_and_an_id_stand_beside_the_evidence_which_stays_text() -> None:
    story, seq = doubtful()
    settle(story, seq, external_id=" re_1Pq ", file=EvidenceFile("a/b\\scan.pdf", "application/pdf", b"%PDF"))
    body = last(story, "RECONCILE").body
    file = body["file"]
    assert (body["evidence"], body["external_id"]) == ("row 7", "re_1Pq")
    assert (file["name"], file["type"], file["size"]) == ("scan.pdf", "application/pdf", 4)
    assert payload_store().open(file["content"]) == b"%PDF" and file["content"].sha256 == file["sha256"]
    assert verify_run(story.run.id) == []


def test_a_file_of_an_unpleasant_kind_is_refused_or_made_plain() -> None:
    story, seq = doubtful()
    with pytest.raises(FileTooLarge):
        settle(story, seq, file=EvidenceFile("x", "", b"x" * (LARGEST + 1)))
    for external_id in ("x" * 501, "a\0b", "\ud800"):
        with pytest.raises(BadInput):
            settle(story, seq, external_id=external_id)
    settle(story, seq, file=EvidenceFile("..", "text/html\r\nX: y", b""))
    assert (last(story, "RECONCILE").body["file"]["type"], plain_name("/")) == ("application/octet-stream", "evidence")
    assert plain_name("C:\\tmp\\\u202efdp.exe") == "fdp.exe"


def test_a_large_result_goes_beside_the_journal() -> None:
    story, seq = doubtful()
    settle(story, seq, result="x" * 50_000)
    assert payload_store().resolve(last(story, "OBS").body)["result"] == "x" * 50_000
    assert verify_run(story.run.id) == []


def test_a_late_failure_is_adopted_as_what_never_happened() -> None:
    story, seq = doubtful()
    number = late(story, "failed", error="no such order")
    adopt(story, seq, number)
    assert last(story, "RECONCILE").body["verdict"] == "never_happened"
    settled = last(story, "OBS")
    assert settled.body == {"outcome": "failed", "error": "no such order", "source": "late"} and settled.settles == 1
    assert Evidence.objects.get(pk=number).adopted_seq == settled.seq
    assert Run.objects.get(pk=story.run.pk).status == "queued"


def test_only_a_result_of_this_step_that_says_something_is_adopted_and_only_once() -> None:
    story, seq = doubtful()
    other, _ = doubtful()
    for number in (late(story, "unknown", error="cut"), late(other, result=1), 10**9):
        with pytest.raises(EvidenceUseless):
            adopt(story, seq, number)
    first, second = late(story, result="a"), late(story, result="b")
    adopt(story, seq, first)
    with pytest.raises(AlreadyReconciled) as refused:
        adopt(story, seq, second)
    assert refused.value.actor == "olga" and Evidence.objects.get(pk=second).adopted_seq is None


def test_nothing_is_adopted_while_a_worker_waits_for_the_answer_or_after_the_end() -> None:
    story, seq = doubtful()
    story.write("ATTEMPT", {"attempt": 2, "source": "retry"}, step=1)
    number = late(story, result="a")
    story.now_is("running", session=session("w8"))
    with pytest.raises(NotInDoubt):
        adopt(story, seq, number)
    story.done(cancelled="enough")
    story.now_is("cancelled", session=None, ended_at="2026-11-17T14:02:11Z")
    with pytest.raises(RunEnded):
        adopt(story, seq, number)


def test_what_was_settled_is_paged_newest_first_and_apart() -> None:
    user = viewer()
    story = Story()
    story.claimed()
    for n in range(120):
        story.step += 1
        body = {"tool": f"tool-{n}", "args": {}, "key": f"k:{n}", "effect": "keyed", "digest": "d", "gate": None}
        story.write("TOOL_CALL", body, step=story.step)
        story.write("RECONCILE", {"verdict": "undecided", "evidence": "502"}, step=story.step, actor="system")
        actor = "olga" if n % 2 else "system"
        story.write("RECONCILE", {"verdict": "happened", "evidence": f"row {n}"}, step=story.step, actor=actor)
        story.result({"n": n})
    seen, after = [], ""
    while True:
        page, cursor = list_settled(by_people, user, after)
        seen += [one.tool for one in page]
        if cursor is None:
            break
        after = cursor
    assert seen == [f"tool-{n}" for n in range(119, 0, -2)]
    machines, _ = list_settled(by_itself, user)
    assert [one.answer["result"]["n"] for one in machines if one.answer][:2] == [118, 116]


def test_the_list_of_what_was_settled_reads_the_index_of_rare_kinds() -> None:
    given = dict.fromkeys(("before", "run", "seq", "within")) | {"limit": 200}
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute("EXPLAIN " + FOUND, given)
        plan = "\n".join(row[0] for row in cursor.fetchall())
    assert "recorded_at" in plan and "Index Scan" in plan and "Seq Scan on journal_entry" not in plan


def test_what_a_probe_settled_is_listed_with_the_tools_answer(crew: Crew, ledger: Ledger) -> None:
    ledger.fault("refund", "late", seconds=3.0)
    run_id = start("hasty", {})
    assert crew.drive(run_id).status == "done"
    (found,), _ = list_settled(by_itself, viewer())
    assert (found.run_id, found.tool, found.word, found.actor) == (run_id, "hasty", "It happened", "system")
    assert found.answer is not None and found.answer["source"] == "probe" and found.answer["result"]["id"]
    assert list_settled(by_people, viewer()) == ([], None)
