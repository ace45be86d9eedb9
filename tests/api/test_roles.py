"""Every verb and every role: who gets through the guard, who is told 403, who is told 401."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from runs.access import user_of_token
from tests.api.conftest import Cast, problem

NOWHERE = "019aa000-0000-7000-8000-000000000000"
RUN = f"/runs/{NOWHERE}"
WHY = {"reason": "test"}
VIEWERS = {"olga", "ada", "victor", "max"}
VERBS: list[tuple[str, str, Any, set[str]]] = [
    ("GET", "/runs", None, VIEWERS),
    ("GET", RUN, None, VIEWERS),
    ("GET", f"{RUN}/journal", None, VIEWERS),
    ("GET", f"{RUN}/state", None, VIEWERS),
    ("GET", f"{RUN}/stream", None, VIEWERS),
    ("GET", "/intents", None, VIEWERS),
    ("GET", "/workers", None, VIEWERS),
    ("GET", "/spending", None, VIEWERS),
    ("GET", "/releases", None, VIEWERS),
    ("GET", "/releases/none@1", None, VIEWERS),
    ("GET", "/releases/none@1/needs", None, VIEWERS),
    ("GET", "/releases/none@1/rates", None, VIEWERS),
    ("GET", "/releases/none@1/diff", None, VIEWERS),
    ("POST", "/releases/none@1/promote", WHY, {"max"}),
    ("POST", "/releases/none@1/canary", WHY | {"share": 10}, {"max"}),
    ("POST", "/releases/none@1/retire", WHY, {"max"}),
    ("POST", "/agents/nobody/rollback", WHY, {"olga", "max"}),
    ("GET", "/agents", None, VIEWERS),
    ("GET", "/agents/nobody", None, VIEWERS),
    ("GET", "/gates", None, VIEWERS),
    ("POST", "/gates", {"scope": "nowhere", "reason": "test"}, {"olga", "max"}),
    ("DELETE", "/gates/7", WHY, {"olga", "max"}),
    ("GET", "/drains", None, VIEWERS),
    ("GET", "/drains/9", None, VIEWERS),
    ("POST", "/drains", {"scope": "nowhere", "reason": "test"}, {"olga", "max"}),
    ("POST", "/drains/preview", {"scope": "nowhere"}, {"olga", "max"}),
    ("POST", "/drains/9/extend", {"seconds": 5, "reason": "test"}, {"olga", "max"}),
    ("DELETE", "/drains/9", WHY, {"olga", "max"}),
    ("GET", "/bulk", None, VIEWERS),
    ("GET", "/bulk/8", None, VIEWERS),
    ("GET", "/bulk/8/items", None, VIEWERS),
    ("POST", "/bulk", {"verb": "hold", "query": "", "dry_run": True}, {"olga", "max"}),
    ("POST", "/bulk/8/stop", {}, {"olga", "max"}),
    ("POST", "/runs", {"agent": "no-such-agent", "input": 1}, {"olga", "max"}),
    ("POST", f"{RUN}/cancel", WHY, {"olga", "max"}),
    ("POST", f"{RUN}/hold", WHY, {"olga", "max"}),
    ("POST", f"{RUN}/resume", WHY, {"olga", "max"}),
    ("POST", f"{RUN}/release", WHY, {"olga", "max"}),
    ("POST", f"{RUN}/retry", WHY, {"olga", "max"}),
    ("POST", f"{RUN}/note", {"text": "seen"}, {"olga", "max"}),
    ("POST", f"{RUN}/signal", {"name": "paid"}, {"olga", "max"}),
    ("POST", f"{RUN}/replay", {}, {"olga", "max"}),
    ("GET", f"{RUN}/fork", None, VIEWERS),
    ("POST", f"{RUN}/fork", WHY | {"at": 1}, {"olga", "max"}),
    ("POST", f"{RUN}/pin", WHY | {"release": "7"}, {"olga", "max"}),
    ("GET", "/replays/7", None, VIEWERS),
    ("POST", f"{RUN}/answer", {"seq": 2, "value": "yes"}, {"olga", "ada", "max"}),
    ("POST", f"{RUN}/intents/2/approval", {"verdict": "approve", "digest": "0" * 64}, {"ada", "max"}),
    ("POST", f"{RUN}/intents/2/adopt", {"evidence": 7, "reason": "test"}, {"olga", "ada", "max"}),
    ("POST", f"{RUN}/intents/2/question", {"text": "so"}, {"olga", "ada", "max"}),
    ("POST", f"{RUN}/intents/2/reconcile", {"verdict": "probe", "evidence": "seen"}, {"olga", "ada", "max"}),
]
NAMES = [f"{method} {path.replace(NOWHERE, '{id}')}" for method, path, _, _ in VERBS]


@pytest.mark.parametrize(("method", "path", "body", "allowed"), VERBS, ids=NAMES)
def test_each_role_may_do_what_its_table_says(cast: Cast, method: str, path: str, body: Any, allowed: set[str]) -> None:
    for name in ("olga", "ada", "victor", "max", "nemo"):
        answer = cast(name).send(method, path, body)
        if name in allowed:
            assert answer.status_code in (200, 404, 422), (name, answer.content)
        else:
            refusal = problem(answer)
            assert refusal["status"] == 403, name
            assert refusal["permission"].startswith("runs.")
            assert refusal["user"] == name


@pytest.mark.parametrize(("method", "path", "body", "allowed"), VERBS, ids=NAMES)
def test_nobody_gets_anywhere_without_a_token(cast: Cast, method: str, path: str, body: Any, allowed: set[str]) -> None:
    answer = cast("nobody").send(method, path, body)
    assert problem(answer)["status"] == 401
    assert answer.headers["WWW-Authenticate"].startswith("Bearer")


def test_a_missing_permission_is_told_before_the_body_is_judged(cast: Cast) -> None:
    assert problem(cast("victor").post(f"{RUN}/cancel", b"{not json"))["status"] == 403


@pytest.mark.parametrize(
    "header", ["Bearer", "Bearer ", "Bearer hf_wrong", "Basic b2xnYTp4", "bearer \xff", "hf_wrong"]
)
def test_a_token_that_is_none_is_401(cast: Cast, header: str) -> None:
    answer = Client().get("/api/v1/runs", headers={"Authorization": header})
    assert problem(answer)["status"] == 401


def test_a_token_of_somebody_switched_off_is_401(cast: Cast) -> None:
    User.objects.filter(username="victor").update(is_active=False)
    assert problem(cast("victor").get("/runs"))["status"] == 401


def test_a_wrong_token_is_not_rescued_by_a_signed_in_browser(cast: Cast) -> None:
    browser = Client()
    browser.force_login(User.objects.get(username="max"))
    assert browser.get("/api/v1/runs").status_code == 200
    assert browser.get("/api/v1/runs", headers={"Authorization": "Bearer hf_wrong"}).status_code == 401


def test_a_page_may_fetch_with_its_session_and_needs_the_csrf_header_to_change_anything(cast: Cast) -> None:
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(User.objects.get(username="olga"))
    assert browser.get("/api/v1/runs").status_code == 200
    refused = browser.post(f"/api/v1{RUN}/hold", WHY, content_type="application/json")
    assert problem(refused)["type"].endswith(":csrf-refused")
    browser.get("/login")
    token = browser.cookies["csrftoken"].value if "csrftoken" in browser.cookies else "a" * 32
    browser.cookies["csrftoken"] = token
    through = browser.post(f"/api/v1{RUN}/hold", WHY, content_type="application/json", headers={"X-CSRFToken": token})
    assert through.status_code == 404


def test_the_use_of_a_token_is_noted(cast: Cast) -> None:
    caller = cast("ada")
    caller.get("/runs")
    user = user_of_token(caller.token)
    assert user is not None
    assert user.token_set.get().last_used_at is not None
