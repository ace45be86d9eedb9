"""The cast, each with a token: Olga operates, Ada approves, Victor views, Max administers, Nemo has no role."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.http import HttpResponse
from django.test import Client

from runs.access import DEMO_USERS, make_token


@dataclass
class Caller:
    """Somebody with a token (or, with an empty one, without)."""

    token: str

    def get(self, path: str, **query: Any) -> Any:
        return self._client().get(f"/api/v1{path}", query, headers=self._headers())

    def post(self, path: str, body: Any = None) -> Any:
        return self.send("POST", path, body)

    def send(self, method: str, path: str, body: Any = None, content_type: str = "application/json") -> Any:
        sent = body if isinstance(body, bytes | str) else Client()._encode_json({} if body is None else body, content_type)
        return self._client().generic(method, f"/api/v1{path}", sent, content_type, headers=self._headers())

    def _client(self) -> Client:
        return Client(raise_request_exception=False)

    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"} if self.token else {}


Cast = Callable[[str], Caller]


@pytest.fixture
def cast(db: None) -> Cast:
    """`cast("olga")` calls with Olga's token; `cast("nobody")` without any."""
    tokens = {name: make_token(name, role) for name, role in DEMO_USERS.items()}
    tokens["nemo"] = make_token("nemo")
    User.objects.get(username="nemo").groups.clear()
    return lambda name: Caller(tokens.get(name, ""))


def problem(answer: HttpResponse) -> dict[str, Any]:
    """The problem document of a refusal; fails if the answer is anything else."""
    assert answer.headers["Content-Type"] == "application/problem+json", answer.content
    document: dict[str, Any] = answer.json()  # type: ignore[attr-defined]
    assert document["status"] == answer.status_code
    assert document["type"].startswith("urn:holdfast:problem:")
    assert document["title"] and document["detail"]
    return document
