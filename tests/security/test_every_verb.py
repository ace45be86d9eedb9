"""Every verb and every role: by page, by fragment and by the API. The table is tests/security/table.py."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.http.response import HttpResponseBase
from django.test import Client

from journal.read import read_head
from runs.access import DEMO_USERS, make_token, set_scope
from runs.commands import note_run
from runs.gates import place_gate
from runs.models import AuditRecord
from runs.short_ids import short_id
from tests.pages.conftest import signed_in
from tests.pages.journals import Story, awaiting_approval
from tests.pages.test_audit import text_of
from tests.pages.waiting_items import asked
from tests.security.table import API, NONE, PAGES, PEOPLE, PUBLIC_ROUTES, address_of, in_turn, operations, routes

HERE = [route for route in routes() if route not in PUBLIC_ROUTES]
KNOWN = [route for route in HERE if route in PAGES]
STREAMS = [route for route in KNOWN if route.startswith("live/")]
STILL = [route for route in KNOWN if not route.startswith("live/")]
HTMX = {"HX-Request": "true"}
MANNERS: dict[str, dict[str, str]] = {"page": {}, "fragment": HTMX}


def test_every_route_and_every_operation_has_a_line_in_the_table() -> None:
    assert sorted(set(HERE) - PAGES.keys()) == []
    assert sorted(set(operations()) - API.keys()) == []


def test_the_table_has_no_line_for_what_is_gone() -> None:
    assert sorted(PAGES.keys() - set(HERE)) == []
    assert sorted(API.keys() - set(operations())) == []


def sent(client: Client, route: str, story: Story, method: str, manner: dict[str, str]) -> HttpResponseBase:
    line = PAGES[route]
    address = address_of(route, line, short_id(story.run.id), str(story.run.id))
    if method == "GET":
        return client.get(address, headers=manner)
    return client.post(address, line.sends or {}, headers=manner)


def judged(who: str, answer: HttpResponseBase, allowed: frozenset[str], what: str) -> None:
    if allowed == NONE:
        assert answer.status_code == 405, what
    elif who in allowed:
        assert answer.status_code not in (401, 403, 405) and answer.status_code < 500, (what, answer.status_code)
        assert not answer.headers.get("Location", "").startswith("/login"), what
    else:
        assert answer.status_code == 403, (what, answer.status_code)


@pytest.mark.parametrize("who", PEOPLE)
def test_each_role_may_do_on_pages_what_the_table_says(cast: None, who: str) -> None:
    client, story = signed_in(who), awaiting_approval()[0]
    client.raise_request_exception = False
    for place, route in enumerate(STILL):
        line = PAGES[route]
        for method, allowed in (("GET", line.reads), ("POST", line.writes)):
            for at, (manner, headers) in enumerate(MANNERS.items()):
                if in_turn(len(MANNERS), place, at, PEOPLE.index(who), method == "GET"):
                    answer = sent(client, route, story, method, headers)
                    judged(who, answer, allowed, f"{who} {method} {route} as a {manner}")


@pytest.mark.parametrize("manner", MANNERS)
def test_a_viewer_changes_nothing(cast: None, manner: str) -> None:
    client, story = signed_in("victor"), awaiting_approval()[0]
    for route in STILL:
        sent(client, route, story, "POST", MANNERS[manner])
    assert read_head(None, story.run.id).last_seq == story.last
    assert set(AuditRecord.objects.values_list("act", flat=True)) <= {"refused"}


@pytest.mark.parametrize("manner", MANNERS)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_nobody_and_somebody_without_a_role_get_nowhere(cast: None, method: str, manner: str) -> None:
    stranger = Client(raise_request_exception=False)
    stranger.force_login(User.objects.create(username="stranger"))
    story = awaiting_approval()[0]
    for route in STILL:
        allowed = PAGES[route].reads if method == "GET" else PAGES[route].writes
        if allowed == NONE:
            continue
        assert sent(stranger, route, story, method, MANNERS[manner]).status_code == 403, route
        answer = sent(Client(), route, story, method, MANNERS[manner])
        if manner == "page":
            assert answer.status_code == 302 and answer.headers["Location"].startswith("/login?next=/"), route
        else:
            assert answer.status_code == 401 and {"HX-Refresh", "HX-Redirect"} & set(answer.headers), route
    assert read_head(None, story.run.id).last_seq == story.last


@pytest.mark.parametrize("route", STREAMS)
def test_streams_are_for_those_who_may_look(dsn: str, cast: None, route: str) -> None:
    story = Story()
    User.objects.create(username="stranger")
    assert sent(Client(), route, story, "GET", {}).status_code == 401
    assert sent(signed_in("stranger"), route, story, "GET", {}).status_code == 403
    for who in PEOPLE:
        assert sent(signed_in(who), route, story, "GET", {}).status_code in (200, 404)
        assert sent(signed_in(who), route, story, "POST", {}).status_code == 405
    if "run_id" in route:
        set_scope("max", ["another"], actor="test")
        assert sent(signed_in("max"), route, story, "GET", {}).status_code == 404


# -- the API -----------------------------------------------------------------------------------------------------------


def call(token: str, method: str, path: str, ref: str, body: Any) -> Any:
    given = {"{ref}": ref, "{seq}": "2", "{gate_id}": "7", "{replay_id}": "7", "{name}": "refund-desk"}
    for word, value in given.items():
        path = path.replace(word, value)
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    sent = b"" if body is None else json.dumps(body).encode()
    return Client(raise_request_exception=False).generic(
        method, f"/api/v1{path}", sent, "application/json", headers=headers
    )


@pytest.fixture
def tokens(cast: None) -> dict[str, str]:
    found = {name: make_token(name, role) for name, role in DEMO_USERS.items()}
    found["stranger"] = make_token("stranger")
    User.objects.get(username="stranger").groups.clear()
    return found | {"nobody": ""}


@pytest.mark.parametrize("who", [*PEOPLE, "stranger", "nobody"])
def test_each_role_may_do_in_the_api_what_the_table_says(tokens: dict[str, str], who: str) -> None:
    for (method, path), (allowed, body) in API.items():
        what = f"{who} {method} {path}"
        ref = "r-00000000" if path.endswith("/stream") else short_id(awaiting_approval()[0].run.id)
        answer = call(tokens[who], method, path, ref, body)
        if who == "nobody":
            assert answer.status_code == 401 and answer.headers["WWW-Authenticate"].startswith("Bearer"), what
        elif who in allowed:
            assert answer.status_code not in (401, 403, 405) and answer.status_code < 500, (what, answer.content)
        else:
            assert answer.status_code == 403, (what, answer.content)
            assert answer.json()["user"] == who and answer.json()["permission"].startswith("runs."), what


# -- scope -------------------------------------------------------------------------------------------------------------

OF_A_RUN: list[tuple[str, str]] = [
    (route, method)
    for route in STILL
    if "ref" in route
    for method, allowed in (("GET", PAGES.get(route)), ("POST", PAGES.get(route)))
    if allowed is not None and (allowed.reads if method == "GET" else allowed.writes)
]


@pytest.mark.parametrize("manner", MANNERS)
def test_a_run_outside_of_the_scope_is_as_if_it_did_not_exist(cast: None, manner: str) -> None:
    set_scope("max", ["another"], actor="test")
    client, story = signed_in("max"), awaiting_approval()[0]
    for route, method in OF_A_RUN:
        answer = sent(client, route, story, method, MANNERS[manner])
        assert answer.status_code == 404, (method, route, answer.status_code)
        assert b"refund-desk" not in answer.content, route  # type: ignore[attr-defined]
    assert read_head(None, story.run.id).last_seq == story.last


def test_a_run_outside_of_the_scope_does_not_exist_for_the_api(tokens: dict[str, str]) -> None:
    set_scope("max", ["another"], actor="test")
    story = awaiting_approval()[0]
    for method, path in [key for key in API if "{ref}" in key[1]]:
        for ref in (str(story.run.id), short_id(story.run.id)):
            answer = call(tokens["max"], method, path, ref, API[method, path][1])
            assert answer.status_code == 404 and b"refund-desk" not in answer.content, (path, answer.content)


LISTS = [
    "/", "/runs", "/runs?q=agent:refund-desk", "/inbox", "/inbox/settled", "/bulk", "/bulk/all", "/agents", "/gates",
    "/workers", "/audit", "/audit/export?as=csv", "/audit/export?as=jsonl", "/bulk/order?verb=cancel",
    "/start",
]  # fmt: skip
API_LISTS = ["/runs", "/intents", "/agents", "/releases", "/gates"]


def test_lists_counts_and_searches_leave_out_what_is_outside_of_the_scope(tokens: dict[str, str]) -> None:
    story, _ = asked()
    note_run(run_id=story.run.id, text="seen by olga", actor="olga")
    place_gate(scope="agent:refund-desk", reason="the bank is away", actor="olga")
    short = short_id(story.run.id)
    looked = [*LISTS, f"/jump?q={short}", f"/suggest/runs?q={short}", f"/runs?q={short}"]
    client = signed_in("max")
    told = [page for page in looked if says(client.get(page), short)]
    assert {"/runs", "/inbox", "/audit"} <= set(told)  # whoever sees all is shown it
    set_scope("max", ["another"], actor="test")
    client = signed_in("max")
    for page in looked:
        answer = client.get(page)
        assert answer.status_code in (200, 302), page
        assert not says(answer, f"/{short}"), page
        assert not says(answer, str(story.run.id)), page
        if "refund-desk" not in page:
            assert not says(answer, "refund-desk"), page
    for path in API_LISTS:
        answer = call(tokens["max"], "GET", path, "", None)
        assert answer.status_code == 200 and answer.json()["items"] == [], path
    for page in ("", "/start", "/tools/refund"):
        assert client.get(f"/agents/refund-desk{page}").status_code == 404, page
    assert call(tokens["max"], "GET", "/agents/refund-desk", "", None).status_code == 404


def says(answer: Any, text: str) -> bool:
    return text in text_of(answer) + answer.headers.get("Location", "")


@pytest.mark.parametrize("scope", ["all", "agent:refund-desk", "release:refund-desk@7", "tool:refund", "worker:w1"])
def test_a_gate_reaches_no_further_than_the_scope(tokens: dict[str, str], scope: str) -> None:
    Story()
    set_scope("olga", ["another"], actor="test")
    answer = call(tokens["olga"], "POST", "/gates", "", {"scope": scope, "reason": "test"})
    assert answer.status_code == 403
    page = signed_in("olga").post("/gates/place", {"scope": scope, "reason": "test"})
    assert page.status_code == 403


def test_a_run_of_another_agent_is_not_started(tokens: dict[str, str]) -> None:
    Story()
    set_scope("olga", ["another"], actor="test")
    given = {"agent": "refund-desk", "input": {"order_id": "o-1"}}
    refused = call(tokens["olga"], "POST", "/runs", "", given)
    assert refused.status_code == 422 and "'refund-desk' is none of another." in refused.json()["detail"]
    set_scope("olga", ["refund-desk"], actor="test")
    assert call(tokens["olga"], "POST", "/runs", "", given).status_code == 201


def test_a_scope_gives_nothing_that_the_role_does_not(cast: None) -> None:
    set_scope("victor", ["refund-desk"], actor="test")
    client, story = signed_in("victor"), Story()
    assert client.get(story.url).status_code == 200
    assert client.post(f"{story.url}/hold", {"reason": "x"}).status_code == 403
