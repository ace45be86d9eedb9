"""Refusals: bad bodies, huge bodies, unknown addresses; each is a problem document that says what is wrong."""

from __future__ import annotations

import re
from typing import Any, get_args
from uuid import uuid4

import pytest
from django.conf import settings
from django.db import OperationalError

import runs.rest.api
from config.api import api
from config.errors import STATUS_OF
from journal import errors as journal_errors
from recovery import errors as recovery_errors
from runs import access, guards, registry
from runs import errors as run_errors
from runs.rest.schemas import Sent
from tests.api.conftest import Cast, Desk, problem

START = {"agent": "no-such-agent", "input": None}


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"{", "not JSON"),
        (b"\xff\xfe", "not UTF-8"),
        (b'{"agent": "a", "input": NaN}', "NaN"),
        (b'{"agent": "a", "input": -Infinity}', "Infinity"),
        (b'{"agent": "a", "input": 1e999}', "1e999"),
        (b'{"agent": "a", "agent": "b"}', "'agent' is given twice"),
        (b'{"agent": "a", "input": ' + b"9" * 5000 + b"}", "4300 digits"),
        (b'{"agent": "a", "input": ' + b"[" * 100 + b"]" * 100 + b"}", "nested deeper"),
        (b'{"agent": "a", "input": ' + b"[" * 200_000 + b"]" * 200_000 + b"}", "nested deeper"),
    ],
)
def test_a_body_that_is_not_strict_json_is_400(cast: Cast, body: bytes, says: str) -> None:
    refusal = problem(cast("olga").post("/runs", body))
    assert refusal["status"] == 400
    assert says in refusal["detail"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (START | {"inptu": 1}, "inptu"),
        (START | {"agent": 7}, "agent"),
        (START | {"agent": ""}, "agent"),
        (START | {"agent": "a\0b"}, "agent"),
        (START | {"agent": "a" * 300}, "agent"),
        (START | {"wait": -1}, "wait"),
        (START | {"wait": "long"}, "wait"),
        (START | {"labels": ["x"]}, "labels"),
        (START | {"labels": {"x": "\0"}}, "labels.x"),
        (START | {"request_key": {"a": 1}}, "request_key"),
        ({}, "agent"),
        ([], ""),
        ("text", ""),
        (None, ""),
    ],
)
def test_a_body_of_the_wrong_shape_is_422_and_names_the_field(cast: Cast, body: Any, field: str) -> None:
    import json

    refusal = problem(cast("olga").post("/runs", json.dumps(body)))
    assert refusal["status"] == 422
    assert field in [error["field"] for error in refusal["errors"]] or not field


def test_each_refused_field_is_named_as_the_caller_wrote_it(cast: Cast) -> None:
    described = api.get_openapi_schema(path_prefix="/api/v1/")
    shapes = described["components"]["schemas"]
    for path, methods in described["paths"].items():
        if "requestBody" not in methods.get("post", {}):
            continue
        shape = methods["post"]["requestBody"]["content"]["application/json"]["schema"]["$ref"].rsplit("/", 1)[1]
        names = set(shapes[shape]["properties"])
        where = path.removeprefix("/api/v1").replace("{ref}", str(uuid4())).replace("{seq}", "1")
        where = re.sub(r"\{\w+_id\}", "7", where)
        for wrong in ("soon", -1, True, [], {"a": "b"}, {"": 1}, "a\0"):
            answer = cast("max").post(where, dict.fromkeys(names, wrong))
            if answer.status_code != 422:
                continue  # it may be right
            for error in problem(answer).get("errors", []):
                assert error["field"].split(".")[0] in names, (path, error)
                assert re.fullmatch(r"[\w.]+", error["field"]), (path, error)
                assert not re.search(r"Value error|dictionary|instance|raw data|\w\(", error["message"]), (path, error)


def test_a_deadline_is_refused_in_one_sentence(cast: Cast) -> None:
    for wrong in ("soon", -1, True, {}, "2031-01-31"):
        (error,) = problem(cast("olga").post("/runs", START | {"deadline": wrong}))["errors"]
        assert error["field"] == "deadline" and "seconds above 0, or a time in ISO 8601" in error["message"]


def test_a_body_that_is_no_object_and_a_name_that_is_none_say_so(cast: Cast) -> None:
    assert problem(cast("olga").post("/runs", b"[]"))["detail"] == "body: Input should be an object"
    refusal = problem(cast("olga").post("/runs", START | {"labels": {"x" * 201: "y"}}))
    assert refusal["errors"][0]["message"] == "its name: String should have at most 200 characters"


def test_agents_that_cannot_be_imported_are_503_and_named(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> Any:
        raise registry.AgentsUnusable("HOLDFAST_AGENTS names nasty, which cannot be imported: invalid syntax")

    monkeypatch.setattr("runs.registry.agents", broken)
    refusal = problem(cast("olga").post("/runs", START))
    assert (refusal["status"], refusal["type"]) == (503, "urn:holdfast:problem:agents-unusable")
    assert "names nasty" in refusal["detail"]


def test_a_refused_value_is_not_repeated(cast: Cast) -> None:
    answer = cast("olga").post("/runs", START | {"agent": {"password": "s3cret"}})
    assert b"s3cret" not in answer.content


def test_a_missing_body_is_422(cast: Cast) -> None:
    assert problem(cast("olga").send("POST", "/runs", b""))["status"] == 422


def test_a_body_above_the_limit_is_413_and_says_the_limit(cast: Cast) -> None:
    huge = b'{"agent": "a", "input": "' + b"x" * settings.DATA_UPLOAD_MAX_MEMORY_SIZE + b'"}'
    refusal = problem(cast("olga").post("/runs", huge))
    assert refusal["status"] == 413
    assert str(refusal["limit"]) in refusal["detail"]


@pytest.mark.parametrize("path", ["/nothing", "/runs/x/y/z", "/runs/", "/"])
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_an_unknown_address_is_a_problem_document(cast: Cast, path: str, method: str) -> None:
    for name in ("nobody", "olga"):
        assert problem(cast(name).send(method, path))["status"] == 404


def test_a_method_that_the_address_has_not_is_405_and_says_which_it_has(cast: Cast) -> None:
    answer = cast("olga").send("DELETE", "/runs")
    assert problem(answer)["status"] == 405
    assert set(answer.headers["Allow"].split(", ")) == {"GET", "POST"}


@pytest.mark.parametrize(
    "query",
    [
        {"status": "sleeping"},
        {"label": "no-colon"},
        {"limit": 0},
        {"limit": 10**30},
        {"cursor": "nonsense"},
        {"cursor": "\0"},
        {"agent": "\0"},
        {"q": "a\0b"},
        {"release": "\0"},
        {"label": "a:\0"},
        {"stauts": "done"},
    ],
)
def test_a_filter_that_means_nothing_is_422(cast: Cast, query: dict[str, Any]) -> None:
    assert problem(cast("victor").get("/runs", **query))["status"] == 422


@pytest.mark.parametrize("path", ["journal?affter=1", "state?seq=1", "stream?limit=1"])
def test_a_misspelt_word_of_a_read_is_422(cast: Cast, path: str) -> None:
    refusal = problem(cast("victor").get(f"/runs/{uuid4()}/{path}"))
    assert refusal["status"] == 422 and "there is no such filter" in refusal["detail"]


@pytest.mark.parametrize("ref", ["r-0", "nonsense", "%00", "r-%00%00%00%00%00%00%00%00", "019aa000", "r-ABCDEFGH"])
def test_a_run_that_is_not_there_is_404(cast: Cast, ref: str) -> None:
    assert problem(cast("victor").get(f"/runs/{ref}"))["status"] == 404


@pytest.mark.parametrize("seq", ["0", "-1", "x", str(10**30)])
def test_a_seq_that_cannot_be_is_refused(cast: Cast, seq: str) -> None:
    path = f"/runs/019aa000-0000-7000-8000-000000000000/intents/{seq}/approval"
    assert problem(cast("ada").post(path, {"verdict": "approve", "digest": "d"}))["status"] in (404, 422)


def test_what_nobody_foresaw_is_500_without_a_word_about_the_inside(
    cast: Cast, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def breaks(**_: Any) -> None:
        raise RuntimeError("secret inside")

    monkeypatch.setattr(runs.rest.api, "list_runs", breaks)
    answer = cast("victor").get("/runs")
    assert problem(answer)["status"] == 500
    assert b"secret" not in answer.content
    assert "secret inside" in caplog.text


def test_a_database_that_is_away_is_503_and_asks_to_come_back(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(**_: Any) -> None:
        raise OperationalError("connection refused")

    monkeypatch.setattr(runs.rest.api, "list_runs", away)
    answer = cast("victor").get("/runs")
    assert problem(answer)["status"] == 503
    assert answer.headers["Retry-After"]


def test_each_error_of_the_rooms_has_its_place_in_the_table() -> None:
    """Errors that never leave a worker or a command of the journal are named here instead."""
    inside = {"CommitterClosed", "ImportRefused", "NoSuchEntry", "NotFinished"}
    for module in (run_errors, recovery_errors, journal_errors, access, guards):
        for name, kind in vars(module).items():
            if not isinstance(kind, type) or not issubclass(kind, Exception) or kind.__module__ != module.__name__:
                continue
            is_base = any(
                issubclass(other, kind) and other is not kind
                for other in vars(module).values()
                if isinstance(other, type)
            )
            assert STATUS_OF.keys() & set(kind.__mro__) or is_base or name in inside, name


def test_a_text_that_is_too_long_is_told_in_characters(cast: Cast) -> None:
    body = {"verb": "hold", "query": "x" * 4_001, "reason": "test"}
    for answer in (cast("olga").post("/bulk", body), cast("olga").get("/runs", query="x" * 4_001)):
        assert "at most 4000 characters" in problem(answer)["detail"]


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("/runs", START | {"priority": "1"}, "priority"),
        ("/runs", START | {"wait": True}, "wait"),
        ("/runs/{run}/fork", {"at": "1", "reason": "look"}, "at"),
        ("/runs/{run}/fork", {"at": True, "reason": "look"}, "at"),
        ("/runs/{run}/fork", {"at": 1.0, "reason": "look"}, "at"),
        ("/runs/{run}/fork", {"at": 1, "reason": "look", "edits": [{"seq": "1", "value": 1}]}, "edits.0.seq"),
        ("/runs/{run}/replay", {"ask_model": "yes"}, "ask_model"),
        ("/runs/{run}/pin", {"release": "2", "reason": "look", "dry_run": 1}, "dry_run"),
        ("/drains", {"scope": "agent:x", "timeout": "5", "reason": "look"}, "timeout"),
        ("/drains/preview", {"scope": "agent:x", "timeout": True}, "timeout"),
        ("/bulk", {"verb": "hold", "query": "", "reason": "look", "dry_run": "false"}, "dry_run"),
    ],
)
def test_a_number_or_a_yes_is_no_text_that_looks_like_one(
    cast: Cast, desk: Desk, path: str, body: Any, field: str
) -> None:
    run = cast("olga").post("/runs", {"agent": "desk", "input": {"amount_cents": 1}}).json()["id"]
    refusal = problem(cast("olga").post(path.format(run=run), body))
    assert refusal["status"] == 422 and [error["field"] for error in refusal["errors"]] == [field]


def test_every_body_is_as_strict() -> None:
    found = [
        shape
        for _, router in api._routers
        for view in router.path_operations.values()
        for operation in view.operations
        for model in operation.models
        if model.__ninja_param_source__ == "body"  # type: ignore[attr-defined]
        for each in model.model_fields.values()
        for shape in (get_args(each.annotation) or (each.annotation,))
        if shape is not type(None)
    ]
    assert len(found) > 20 and [shape for shape in found if not issubclass(shape, Sent)] == []


@pytest.mark.parametrize("blank", ["\u200b", " \u2060\ufeff ", "\u3164", "\u00ad\u202e", "\n\u2028"])
def test_a_reason_that_nobody_can_see_is_none(cast: Cast, desk: Desk, blank: str) -> None:
    run = cast("olga").post("/runs", {"agent": "desk", "input": {"amount_cents": 1}}).json()["id"]
    for path, body in (
        (f"/runs/{run}/hold", {}), (f"/runs/{run}/fork", {"at": 1}), ("/gates", {"scope": "agent:desk"}),
        ("/drains", {"scope": "agent:desk"}),
    ):  # fmt: skip
        refusal = problem(cast("olga").post(path, body | {"reason": blank}))
        assert refusal["type"].endswith(":reason-missing"), path
    assert problem(cast("olga").post(f"/runs/{run}/note", {"text": blank}))["type"].endswith(":reason-missing")
