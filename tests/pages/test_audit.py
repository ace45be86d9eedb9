"""The audit list: what it shows, finds, pages through and exports, and what refused attempts leave there."""

from __future__ import annotations

import csv
import io
import json
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.test import Client
from django.utils import timezone

from runs import audit_list
from runs.access import make_token
from runs.audit import record, through
from runs.commands import cancel_run, note_run
from runs.models import AuditRecord
from runs.short_ids import short_id
from tests.pages.conftest import signed_in
from tests.pages.journals import Story, awaiting_approval

pytestmark = pytest.mark.django_db


def text_of(answer: Any) -> str:
    """A page, or a stream to its end."""
    if not answer.streaming:
        return str(answer.content.decode())

    async def read() -> bytes:
        return b"".join([part async for part in answer.streaming_content])

    return async_to_sync(read)().decode()


def exported(client: Client, **asked: str) -> list[dict[str, Any]]:
    answer = client.get("/audit/export", {"as": "jsonl"} | asked)
    assert answer.headers["Content-Disposition"] == 'attachment; filename="audit.jsonl"'
    return [json.loads(line) for line in text_of(answer).splitlines()]


def acts(client: Client, **asked: str) -> list[str]:
    return [row["act"] for row in exported(client, **asked) if row["act"] not in ("audit.export", "token.create")]


def test_it_tells_who_did_what_to_which_entry_when_why_and_through_which_door(olga: Client) -> None:
    story = Story()
    with through("page", "192.0.2.7"):
        cancel_run(run_id=story.run.id, reason="a wrong order", actor="olga")
    page = text_of(olga.get("/audit"))
    for shown in (
        "olga",
        "operator",
        "Cancelled",
        f"/runs/{short_id(story.run.id)}?seq=2",
        "a wrong order",
        "192.0.2.7",
    ):
        assert shown in page, shown
    assert "seq 2" in page and "<time datetime=" in page


def test_it_is_found_by_person_run_agent_act_door_day_and_words(olga: Client) -> None:
    story = Story()
    with through("api"):
        note_run(run_id=story.run.id, text="looked at the ledger", actor="ada")
    cancel_run(run_id=story.run.id, reason="a wrong order", actor="max")
    record("max", "gate.place", agent="letters", subject="agent:letters")
    short = short_id(story.run.id)
    assert acts(olga, q="who:ada") == ["run.note"]
    assert acts(olga, q=f"run:{short}") == acts(olga, q=short) == acts(olga, q=str(story.run.id))
    assert acts(olga, q=short) == ["run.cancel", "run.note"]
    assert acts(olga, q="agent:letters") == ["gate.place"]
    assert acts(olga, q="door:api") == ["run.note"]
    assert acts(olga, q="act:gate") == acts(olga, did="gates") == ["gate.place"]
    assert acts(olga, did="runs") == ["run.cancel", "run.note"]
    assert acts(olga, q="LEDGER looked") == ["run.note"]
    assert acts(olga, q="wrong") == ["run.cancel"]
    assert acts(olga, q="who:ada wrong") == acts(olga, q="who:nobody") == acts(olga, q="%") == []
    today, tomorrow = timezone.now().date(), timezone.now().date() + timedelta(days=1)
    assert len(acts(olga, since=str(today), until=str(today))) == 3
    assert acts(olga, since=str(tomorrow)) == acts(olga, until=str(today - timedelta(days=1))) == []


def test_what_cannot_be_understood_is_said_and_filters_nothing(olga: Client) -> None:
    record("max", "gate.place")
    page = olga.get("/audit?since=yesterday&did=nonsense&after=x&q=%00")
    assert page.status_code == 200
    assert "filters nothing" in text_of(page) and "Placed a gate" in text_of(page)
    for day in ("0001-01-01", "9999-12-31"):
        assert olga.get(f"/audit?since={day}&until={day}").status_code == 200, day


def test_pages_follow_each_other_without_a_gap_while_records_come_in(
    olga: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_list, "PER_PAGE", 4)
    monkeypatch.setattr(audit_list, "AT_ONCE", 3)
    for n in range(10):
        record("max", "gate.place", subject=f"tool:t{n}x")
    seen: list[str] = []
    address = "/audit?did=gates"
    while address:
        page = text_of(olga.get(address))
        seen += [f"t{n}" for n in range(99, -1, -1) if f"tool:t{n}x" in page]
        record("max", "gate.lift", subject=f"tool:t{len(seen) + 50}x")
        older = [part.split('"')[0] for part in page.split('href="')[1:] if 'rel="next"' in part.split(">")[0]]
        address = older[0].replace("&amp;", "&") if older else ""
    assert seen == [f"t{n}" for n in range(9, -1, -1)]
    assert len(acts(olga, q="act:gate.place")) == 10


def test_a_spreadsheet_computes_nothing_of_an_export(olga: Client) -> None:
    for text in ("=1+1", "+1", "-1", "@SUM(A1)", "\tx", "\rx", 'a "quoted", text\nwith lines'):
        record("max", "gate.place", subject=text, reason=text)
    answer = olga.get("/audit/export", {"as": "csv", "did": "gates"})
    assert answer.headers["Content-Type"] == "text/csv; charset=utf-8"
    rows = list(csv.DictReader(io.StringIO(text_of(answer), newline="")))
    told = [row["subject"] for row in reversed(rows)]
    assert told == ["'=1+1", "'+1", "'-1", "'@SUM(A1)", "'\tx", "'\rx", 'a "quoted", text\nwith lines']
    assert [row["reason"] for row in reversed(rows)] == told


def test_an_export_is_an_act_too(olga: Client) -> None:
    text_of(olga.get("/audit/export?as=csv&q=who:ada"))
    told = AuditRecord.objects.get(act="audit.export")
    assert (told.actor, told.subject, told.detail) == ("olga", "csv", {"filter": "q=who%3Aada"})


def test_what_somebody_tried_and_may_not_is_kept_with_the_run_it_was_about(cast: None) -> None:
    story, seq = awaiting_approval()
    signed_in("victor").post(f"{story.url}/hold", {"reason": "let me"})
    token = make_token("olga", "operator")
    given = {"verdict": "approve", "digest": "0" * 64}
    Client().post(
        f"/api/v1{story.url}/intents/{seq}/approval", given, "application/json",
        headers={"Authorization": f"Bearer {token}"},
    )  # fmt: skip
    first, second = AuditRecord.objects.filter(act="refused").order_by("id")
    assert (first.actor, first.role, first.run, first.agent) == ("victor", "viewer", story.run.id, "refund-desk")
    assert (first.subject, first.detail) == (f"POST {story.url}/hold", {"permission": "runs.control_run"})
    assert (second.actor, second.door, second.run) == ("olga", "api", story.run.id)
    assert second.detail == {"permission": "runs.approve_intent", "seq": seq}
    assert "Refused" in text_of(signed_in("max").get("/audit"))


def test_who_only_looks_leaves_no_trace(cast: None) -> None:
    assert signed_in("victor").get("/audit").status_code == 403
    assert not AuditRecord.objects.exists()


def test_logins_are_kept_and_a_name_that_is_none_is_not(cast: None) -> None:
    client = Client()
    client.post("/login", {"username": "my-secret-password", "password": "x"})
    client.post("/login", {"username": "ada", "password": "x"})
    client.post("/login", {"username": "ada", "password": "four-words-of-the-demo"})
    client.post("/logout")
    told = AuditRecord.objects.order_by("id").values_list("actor", "act", "subject", "door")
    assert list(told) == [
        ("nobody", "login.refused", "an unknown name", "page"),
        ("nobody", "login.refused", "ada", "page"),
        ("ada", "login", "", "page"),
        ("ada", "logout", "", "page"),
    ]


def test_what_the_filter_cannot_read_is_said_and_never_exported_as_if_it_were_not_there(olga: Client) -> None:
    for asked, said in (
        ("since=9999-99-99", "Enter a valid date."), ("until=tomorrow", "Enter a valid date."),
        ("did=nothing", "nothing is not one of"), ("from=2026-01-01", "There is no filter from."),
    ):  # fmt: skip
        page = olga.get(f"/audit?{asked}")
        assert page.status_code == 200 and said in page.content.decode(), asked
        assert "That part filters nothing." in page.content.decode()
        export = olga.get(f"/audit/export?as=csv&{asked}")
        assert export.status_code == 422 and said in export.content.decode(), asked
    assert not AuditRecord.objects.filter(act="audit.export").exists()
