"""The cast, each with a token: Olga operates, Ada approves, Victor views, Max administers, Nemo has no role."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.db import connection
from django.http import HttpResponse
from django.test import Client

from journal.payloads import payload_store
from runs import registry
from runs.access import DEMO_USERS, make_token
from runs.engine.sessions import Session
from runs.engine.worker import Worker
from runs.models import Run, Status
from tests.api import agents as api_agents


@dataclass
class Caller:
    """Somebody with a token (or, with an empty one, without)."""

    token: str

    def get(self, path: str, **query: Any) -> Any:
        return self._client().get(f"/api/v1{path}", query, headers=self._headers())

    def post(self, path: str, body: Any = None) -> Any:
        return self.send("POST", path, body)

    def send(self, method: str, path: str, body: Any = None, content_type: str = "application/json") -> Any:
        sent = (
            body if isinstance(body, bytes | str) else Client()._encode_json({} if body is None else body, content_type)
        )
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


@dataclass
class Desk:
    """A worker in this process, which drives the runs that are queued when told to, or by itself in a thread."""

    worker: Worker

    def work(self) -> None:
        """Until nothing is queued any more."""
        while queued := list(Run.objects.filter(status=Status.QUEUED).values_list("id", "release_id")):
            for run_id, release_id in queued:
                self.worker.advance(run_id, release_id)

    @contextmanager
    def at_work(self) -> Iterator[None]:
        stop = threading.Event()

        def loop() -> None:
            try:
                while not stop.wait(0.01):
                    self.work()
            finally:
                connection.close()

        thread = threading.Thread(target=loop)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join(60)


@pytest.fixture
def desk(dsn: str, cast: Cast, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    """Real commits, the agents of tests/api/agents.py, and somebody to drive them."""
    monkeypatch.setattr(settings, "HOLDFAST_AGENTS", ["tests.api.agents"])
    registry.agents.cache_clear()
    api_agents.CALLS.clear()
    api_agents.LATE.set()
    registry.announce()
    agents = registry.agents()
    session = Session("desk", "threads", 4, "local", 10.0, list(agents), {i: a.code_digest for i, a in agents.items()})
    worker = Worker(dsn, session, agents, payload_store(), lambda run_id, release_id: None)
    yield Desk(worker)
    worker.close()
    registry.agents.cache_clear()


def all_at_once(calls: list[Callable[[], Any]]) -> list[Any]:
    """What each answered; every call in its own thread, let go together, on its own connection."""
    ready = threading.Barrier(len(calls))

    def run(call: Callable[[], Any]) -> Any:
        try:
            ready.wait(60)
            return call()
        finally:
            connection.close()

    with ThreadPoolExecutor(len(calls)) as threads:
        return list(threads.map(run, calls))
