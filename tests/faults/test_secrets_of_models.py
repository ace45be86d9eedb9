"""What a model says of secrets, and is told, stands in no row, log, message or request; real worker processes."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from runs.loops.exact import exact_of
from runs.models import Run
from runs.queries import entries_of
from runs.registry import agents, announce
from tests.faults import confides
from tests.faults.confides import KEY
from tests.faults.test_secrets import PATTERN, in_broker, tables_with
from tests.rig.crew import start
from tests.rig.fleet import Fleet
from tests.rig.providers import Providers, providers
from tests.runs.secretive import CARD, SECRET

__all__ = ["providers"]
pytestmark = pytest.mark.slow
PROTOCOLS = ("messages", "chat", "responses")


@pytest.fixture
def fleet(fleet: Fleet, providers: Providers, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Fleet:
    settings.HOLDFAST_AGENTS = ("tests.faults.confides",)
    settings.HOLDFAST_REDACT = PATTERN
    agents.cache_clear()
    announce()
    confides.script(providers)
    fleet.environment |= providers.environment | {
        "HOLDFAST_AGENTS": "tests.faults.confides", "SECRET_KEY": settings.SECRET_KEY, "HOLDFAST_REDACT": PATTERN,
        "OPENAI_API_KEY": KEY, "ANTHROPIC_API_KEY": KEY,
    }  # fmt: skip
    for name, value in providers.environment.items():
        monkeypatch.setenv(name, value)
    return fleet


def requests_of(run_id: UUID) -> list[bytes]:
    run, entries = Run.objects.select_related("release").get(id=run_id), entries_of(run_id)
    asked = [entry.seq for entry in entries if entry.kind == "ATTEMPT" and entry.step is None]
    return [exact_of(run.release.contract, entries, seq).body for seq in asked]


def test_they_stand_nowhere(fleet: Fleet, providers: Providers, embedded_broker: str) -> None:
    given = {"note": f"for {CARD}", "password": SECRET}
    runs = [start(f"confides-{protocol}", given) for protocol in PROTOCOLS]
    worker, _ = fleet.worker(), fleet.sweeper()
    for run_id in runs:
        run = fleet.rests(run_id)
        assert run.status == "done", (run.reason, worker.said()[-3000:])
    told = str([entry.body for entry in entries_of(runs[0])])
    assert "used [secret] for [secret]" in told and "[secret] of [secret] was refused" in told
    assert "'known': True" in told, "the tool was given the secret itself"
    for run_id in runs:
        assert len(requests_of(run_id)) == 4
    shown = b"".join([*(body for run_id in runs for body in requests_of(run_id)), in_broker(embedded_broker)])
    sent = "".join(seen.body for seen in providers.requests)
    for word in (SECRET, CARD, KEY):
        assert word.encode() not in shown
        assert word not in sent, "a model is told no secret again"
        assert word not in Path(worker.log).read_text(errors="replace")
        assert tables_with(fleet.dsn, word) == []


def test_an_error_of_the_provider_is_struck_too(fleet: Fleet, providers: Providers) -> None:
    providers.script("confides", ["x"])
    providers.fault("bad_request", model="confides", times=None)
    run_id = start("confides-chat", {"note": CARD, "password": SECRET})
    worker, _ = fleet.worker(), fleet.sweeper()
    assert fleet.rests(run_id).status == "held"
    for word in (SECRET, CARD, KEY):
        assert tables_with(fleet.dsn, word) == [] and word not in Path(worker.log).read_text(errors="replace")
