"""The description of the API: every verb with every refusal, and a page that needs no other host."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from django.db import Error
from django.test import Client

from config.errors import STATUS_OF, kebab
from tests.api.test_roles import NAMES

DOCS = Path("docs/api.md")


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    from config.api import api

    found: dict[str, Any] = dict(api.get_openapi_schema(path_prefix="/api/v1/"))
    return found


def test_the_description_has_exactly_the_verbs_that_there_are(schema: dict[str, Any]) -> None:
    described = {
        f"{method.upper()} {path.removeprefix('/api/v1').replace('{ref}', '{id}').replace('{gate_id}', '7')}"
        for path, methods in schema["paths"].items()
        for method in methods
    }
    assert {
        name.replace("{seq}", "2")
        .replace("{name}", "nobody")
        .replace("{gate_id}", "7")
        .replace("{drain_id}", "9")
        .replace("{bulk_id}", "8")
        .replace("{replay_id}", "7")
        .replace("{release}", "none@1")
        for name in described
    } == set(NAMES)


def test_each_verb_declares_its_refusals_as_problem_documents(schema: dict[str, Any]) -> None:
    for path, methods in schema["paths"].items():
        for method, operation in methods.items():
            answers = operation["responses"]
            assert {401, 403, 422, 503} <= answers.keys(), (method, path)
            assert 404 in answers or "{ref}" not in path, (method, path)
            assert {400, 413} <= answers.keys() or method == "get", (method, path)
            for status, answer in answers.items():
                shown = "text/event-stream" if path.endswith("/stream") else "application/json"
                expected = "application/problem+json" if status >= 400 else shown
                assert list(answer["content"]) == [expected], (method, path, status)
            assert operation["security"], (method, path)
            assert operation["description"], (method, path)


def test_operation_ids_are_unique(schema: dict[str, Any]) -> None:
    ids = [operation["operationId"] for methods in schema["paths"].values() for operation in methods.values()]
    assert len(ids) == len(set(ids))


@pytest.mark.django_db
def test_the_description_is_served() -> None:
    answer = Client().get("/api/v1/openapi.json")
    assert answer.status_code == 200
    assert answer.json()["info"]["title"] == "Holdfast"


@pytest.mark.django_db
def test_the_page_has_no_inline_script_or_style_and_names_no_other_host() -> None:
    answer = Client().get("/api/v1/docs")
    page = answer.content.decode()
    assert answer.status_code == 200
    assert "'unsafe-inline'" not in answer.headers["Content-Security-Policy"]
    assert not re.search(r"<style|style=|\son\w+=", page)
    assert all("src=" in tag or "application/json" in tag for tag in re.findall(r"<script[^>]*>", page))
    assert "//" not in re.sub(r"<!DOCTYPE.*?>", "", page).replace("://www.w3.org", "")


def test_the_manual_names_each_problem_with_its_status() -> None:
    manual = DOCS.read_text()
    for kind, status in STATUS_OF.items():
        if issubclass(kind, Error):  # told as `database-away`
            continue
        assert re.search(rf"\| `{kebab(kind.__name__)}` \| {status} \|", manual), kind.__name__


def test_the_manual_names_each_verb() -> None:
    manual = DOCS.read_text()
    for name in NAMES:
        method, path = name.split()
        shown = path.replace("/2/", "/{seq}/").replace("nobody", "{name}")
        shown = shown.replace("replays/7", "replays/{replay_id}").replace("/7", "/{gate_id}")
        shown = shown.replace("/9", "/{drain_id}").replace("/8", "/{bulk_id}").replace("none@1", "{release}")
        assert f"`{method} {shown}`" in manual, name
