"""What the audit list keeps, and that nobody can change it."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction
from django.test import Client

from runs.access import make_token, revoke_token, set_scope
from runs.audit import Door, door, record, through
from runs.commands import cancel_run, note_run
from runs.gates import lift_gate, place_gate
from runs.models import AuditRecord
from runs.starting import start_run
from tests.pages.journals import Story, release

pytestmark = pytest.mark.django_db


def last(**wanted: Any) -> AuditRecord:
    return AuditRecord.objects.filter(**wanted).order_by("-id")[0]


def test_a_command_is_recorded_with_its_actor_reason_run_and_entry() -> None:
    make_token("olga", "operator")
    story = Story()
    with through("page", "192.0.2.7"):
        cancel_run(run_id=story.run.id, reason="wrong order", actor="olga")
    found = last(act="run.cancel")
    assert (found.actor, found.role, found.door, found.address) == ("olga", "operator", "page", "192.0.2.7")
    assert (found.run, found.agent, found.reason) == (story.run.id, "refund-desk", "wrong order")
    assert found.detail == {"seq": story.last}


def test_what_is_rolled_back_was_not_done_and_is_not_recorded() -> None:
    story = Story()
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        note_run(run_id=story.run.id, text="seen", actor="olga")
        raise ZeroDivisionError
    assert not AuditRecord.objects.filter(run=story.run.id).exists()


def test_a_start_is_recorded_once_and_not_when_it_is_only_repeated() -> None:
    given = {"agent": release().agent, "input": {"order_id": "o-1"}, "request_key": "k-1"}
    run, _ = start_run(**given, actor="olga")
    start_run(**given, actor="ada")
    (found,) = AuditRecord.objects.filter(act="run.start")
    assert (found.actor, found.run, found.agent, found.detail) == (
        "olga",
        run.id,
        "refund-desk",
        {"request_key": "k-1"},
    )


def test_what_a_machine_starts_is_no_act_of_a_person() -> None:
    for machine in ("system", "sdk"):
        start_run(agent=release().agent, input={"order_id": "o-1"}, actor=machine)
    assert not AuditRecord.objects.filter(act__startswith="run.").exists()


def test_gates_tokens_and_scopes_are_recorded() -> None:
    gate = place_gate(scope="agent:refund-desk", reason="the bank is away", actor="olga")
    lift_gate(gate_id=gate.pk, reason="it is back", actor="max")
    make_token("ada", "approver", days=3, actor="max")
    revoke_token(last(act="token.create").detail["token"], actor="max")
    set_scope("ada", ["refund-desk"], actor="max")
    told = [(r.actor, r.act, r.agent, r.subject, r.reason) for r in AuditRecord.objects.order_by("id")]
    assert told == [
        ("olga", "gate.place", "refund-desk", "agent:refund-desk", "the bank is away"),
        ("max", "gate.lift", "refund-desk", "agent:refund-desk", "it is back"),
        ("max", "token.create", "", "ada", ""),
        ("max", "token.revoke", "", "ada", ""),
        ("max", "user.scope", "", "ada", ""),
    ]


def test_texts_that_a_column_cannot_keep_are_kept_as_well_as_they_can_be() -> None:
    record("ol\0ga", "run.note", subject="\ud800", reason="a\0b", deep={"x\0": ["\udfff", 1.5, None]})
    found = AuditRecord.objects.get()
    assert (found.actor, found.subject, found.reason) == ("ol␀ga", "?", "a␀b")
    assert found.detail == {"deep": {"x␀": ["?", "1.5", None]}}


CHANGES = [
    "UPDATE runs_auditrecord SET actor = 'somebody else'",
    "UPDATE runs_auditrecord SET at = at",
    "DELETE FROM runs_auditrecord",
    "TRUNCATE runs_auditrecord",
    "TRUNCATE runs_auditrecord CASCADE",
    "WITH gone AS (DELETE FROM runs_auditrecord RETURNING 1) SELECT count(*) FROM gone",
    "MERGE INTO runs_auditrecord r USING (SELECT 1) s ON true WHEN MATCHED THEN DELETE",
    "INSERT INTO runs_auditrecord (id, actor, act, door) SELECT id, 'x', 'x', 'page' FROM runs_auditrecord"
    " ON CONFLICT (id) DO UPDATE SET actor = 'x'",
]


@pytest.mark.parametrize("sql", CHANGES)
def test_the_database_lets_nobody_change_a_record_not_even_the_owner_of_the_table(sql: str) -> None:
    record("olga", "run.note")
    with connection.cursor() as cursor:
        cursor.execute("SELECT tableowner = current_user FROM pg_tables WHERE tablename = 'runs_auditrecord'")
        assert cursor.fetchone() == (True,)
        with pytest.raises(IntegrityError, match="never changed or removed"), transaction.atomic():
            cursor.execute(sql)
    assert AuditRecord.objects.get().actor == "olga"


def test_a_request_comes_through_its_door_and_is_out_of_it_afterwards(client: Client) -> None:
    client.get("/healthz")
    assert door() == Door("system", "")
