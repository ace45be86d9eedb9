"""Markup in data: an image with an error handler and a closing script tag, in everything that a person or a model can
name. It is inert wherever it is shown: on pages, in fragments, in live pictures, in errors and in exports.
"""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client, RequestFactory

from journal.entries import Kind
from recovery.pages.live import InboxPicture
from runs.audit import record
from runs.gates import place_gate
from runs.models import Release, Run, SavedView, Status, WorkerSession
from runs.pages.run_live import RunPicture
from runs.pages.runs_live import ListPicture
from runs.short_ids import short_id
from tests.pages.journals import DIGEST, Story
from tests.pages.test_audit import text_of
from tests.pages.waiting_items import listed

EVIL = "\"'><img src=x onerror=alert(1)></script><script>alert(2)</script>{{ 7|add:7 }}\n\ndata: x"
NAME = "\"'><img/src=x/onerror=alert(1)></script><script>alert(2)</script>"  # an agent's has no space, '@', ':', ','
WHO = f"mallory{EVIL}"


class Inert(HTMLParser):
    """Fails at a tag or attribute that only the data can have brought."""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        assert not any(name.startswith("on") for name in given), (tag, attrs)
        assert tag != "img", attrs
        assert tag != "script" or given.get("src", "").startswith("/static/"), attrs  # type: ignore[union-attr]
        assert not any((value or "").lower().startswith("javascript:") for value in given.values()), attrs


def inert(html: str) -> str:
    parser = Inert()
    parser.feed(html)
    parser.close()
    assert "<img" not in html and "<script>alert" not in html
    return html


@pytest.fixture
def mallory(cast: None) -> Client:
    """An admin whose very name is markup: no form makes such a user, a database may have one."""
    user = User.objects.create(username=WHO[:150])
    user.groups.set(Group.objects.filter(name="admin"))
    client = Client(raise_request_exception=False)
    client.force_login(user)
    return client


def evil_story() -> tuple[Story, int, int]:
    """Its run, the seq of a call that waits for approval, and that of a question."""
    tool = {"name": NAME, "effect": "keyed", "probe": True, "parameters": {"type": "object", "title": EVIL}}
    content = {"agent": NAME, "version": NAME, "tools": [tool], "input": {"type": "object", "title": EVIL}}
    release = Release.objects.create(id="e7" * 32, agent=NAME, version=NAME, content=content)
    story = Story()
    Run.objects.filter(pk=story.run.pk).update(
        agent=release.agent, release=release, labels={EVIL: EVIL, "title": EVIL}, request_key=EVIL, business_id=EVIL
    )
    story.plan(thought=EVIL, text=EVIL)
    story.call(NAME, **{EVIL: EVIL})
    story.result({EVIL: [EVIL]})
    story.call(NAME, x=EVIL)
    story.result(outcome="failed", error=EVIL)
    story.write(Kind.SIGNAL, {"name": EVIL, "payload": {EVIL: EVIL}}, actor=WHO)
    story.write(Kind.NOTE, {"text": EVIL}, actor=WHO)
    story.write(Kind.CONTROL, {"verb": "hold", "reason": EVIL}, actor=WHO)
    story.write(Kind.CONTROL, {"verb": "resume", "reason": EVIL}, actor=WHO)
    question = story.ask(EVIL, {"type": "string", "enum": [EVIL], "title": EVIL, "description": EVIL})
    story.step += 1
    body = {"tool": NAME, "args": {EVIL: EVIL}, "key": EVIL, "effect": "keyed", "digest": DIGEST, "gate": "approval"}
    seq = story.write(Kind.TOOL_CALL, body | {"summary": EVIL}, step=story.step)
    policy = {
        "group": "approver", "quorum": 2, "four_eyes": True, "ttl": None, "on_expiry": "park", "remind_every": None,
    }  # fmt: skip
    asked = {"verdict": "requested", "digest": DIGEST, "policy": policy, "why": EVIL, "summary": EVIL}
    story.write(Kind.APPROVAL, asked, step=story.step, actor="system")
    story.write(Kind.APPROVAL, {"verdict": "granted", "digest": DIGEST, "note": EVIL}, step=story.step, actor=WHO)
    story.now_is(Status.AWAITING_APPROVAL, EVIL)
    return listed(story, asked_by=WHO), seq, question


def test_it_is_inert_on_every_page_and_in_every_fragment(mallory: Client) -> None:
    story, seq, question = evil_story()
    short = short_id(story.run.id)
    record(WHO, EVIL, run=story.run.id, agent=EVIL, subject=EVIL, reason=EVIL, **{EVIL: EVIL})
    place_gate(scope="agent:refund-desk", reason=EVIL, actor=WHO)
    SavedView.objects.create(owner=User.objects.get(username=WHO[:150]), name=EVIL[:60], query="q=x", shared=True)
    WorkerSession.objects.create(
        id=story.run.id, name=EVIL, host=EVIL, pid=1, pool=EVIL[:8], concurrency=1, serves=[story.run.release_id],
        heartbeat_at=story.run.created_at, expires_at=story.run.created_at,
    )  # fmt: skip
    pages = [
        "/", "/runs", "/inbox", "/inbox/settled", "/audit", "/agents", "/workers", "/gates", "/bulk", "/start",
        f"/runs/{short}", f"/runs/{short}/journal", f"/runs/{short}/state", f"/inbox/{short}/{seq}",
        f"/inbox/{short}/{question}", f"/runs/{short}/asks/{question}/answer", f"/agents/{NAME}",
        f"/agents/{NAME}/start",
    ]  # fmt: skip
    pages += [f"/runs/{short}?seq={n}" for n in range(1, story.last + 1)]
    pages += [f"/runs/{short}/entries/{n}" for n in range(1, story.last + 1)]
    pages += [f"/inbox/{short}/{seq}/{act}" for act in ("approve", "reject", "edit", "ask", "reply", "reconcile")]
    pages += [f"/runs/{short}/{verb}" for verb in ("cancel", "hold", "note", "signal")]
    shown = 0
    for page in pages:
        for headers in ({}, {"HX-Request": "true"}, {"HX-Request": "true", "HX-Target": "dialog#dialog"}):
            answer = mallory.get(page.replace("\n", "%0A").replace("#", "%23"), headers=headers)
            assert answer.status_code in (200, 302, 303, 404, 409), (page, answer.status_code)
            html = inert(text_of(answer)) if "html" in answer.headers["Content-Type"] else ""
            shown += "&lt;img" in html
    assert shown > 40  # it was there, and told as text


def test_it_is_inert_where_it_is_asked_for_and_refused(mallory: Client) -> None:
    story = Story()
    asked = [
        ("/runs", {"q": EVIL}), ("/runs", {"q": f"agent:{EVIL}"}), ("/jump", {"q": EVIL}),
        ("/suggest/runs", {"q": EVIL}),
        ("/audit", {"q": EVIL, "since": EVIL, "did": EVIL}), ("/inbox", {"q": EVIL, "tool": EVIL}), ("/login", {}),
        (f"{story.url}/hold", {"reason": EVIL}), (f"{story.url}/signal", {"name": EVIL}),
        ("/gates/place", {"scope": EVIL, "agent": EVIL}), ("/runs/" + EVIL.replace("/", ""), {}),
        ("/agents/x" + EVIL, {}),
        ("/bulk/order", {"verb": EVIL, "q": EVIL}), ("/bulk/all", {"q": EVIL}), ("/nothing/" + EVIL, {}),
        ("/views/save", {"q": EVIL}),
    ]  # fmt: skip
    for path, query in asked:
        for headers in ({}, {"HX-Request": "true"}):
            answer = mallory.get(path.replace("\n", "%0A"), query, headers=headers)
            assert answer.status_code < 500, path
            inert(text_of(answer))
    inert(text_of(Client().post("/login", {"username": EVIL[:150], "password": "x", "next": f"/{EVIL}"})))
    for path, given in [
        (f"{story.url}/hold", {"reason": ""}), (f"{story.url}/signal", {"name": EVIL * 9, "payload": EVIL}),
        ("/gates/place", {"scope": EVIL, "reason": EVIL}), ("/views/save", {"name": EVIL * 9}),
    ]:  # fmt: skip
        answer = mallory.post(path, given)
        assert answer.status_code in (302, 404, 409, 422), (path, answer.status_code)
        inert(text_of(answer))


def test_it_is_inert_in_a_stale_form_and_what_was_typed_is_shown_as_text(cast: None) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(User.objects.get(username="olga"))
    for headers in ({}, {"HX-Request": "true"}, {"HX-Request": "true", "HX-Target": "dialog#dialog"}):
        answer = client.post(f"{Story().url}/hold", {"reason": EVIL}, headers=headers)
        assert answer.status_code == 403 and "&lt;img" in inert(text_of(answer))


def test_it_is_inert_in_live_pictures_and_breaks_no_event(mallory: Client) -> None:
    story, seq, _ = evil_story()
    request: Any = RequestFactory().get(f"/live?rows={story.run.id.hex},{story.run.id.hex}-{seq}")
    request.user = User.objects.get(username=WHO[:150])
    pictures = [
        RunPicture(request, story.run.id, 0),
        ListPicture(asking(request, rows=story.run.id.hex)),
        InboxPicture(asking(request, rows=f"{story.run.id.hex}-{seq}")),
    ]
    for picture in pictures:
        sent = picture.draw()
        assert "&lt;img" in inert(sent), type(picture).__name__
        for line in sent.split("\n"):
            assert line == "" or line.partition(":")[0] in ("data", "id", "event", "retry"), line[:80]


def asking(like: Any, **query: str) -> Any:
    request: Any = RequestFactory().get("/live", query)
    request.user = like.user
    return request


def test_what_a_browser_is_told_to_run_comes_from_our_own_files_alone(mallory: Client) -> None:
    for page in ("/runs", "/login", "/audit", "/nothing"):
        policy = mallory.get(page).headers["Content-Security-Policy"]
        assert "script-src 'self'" in policy and "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy and "form-action 'self'" in policy and "base-uri 'none'" in policy
