"""Every verb with what its description allows, and with what it does not, on a database with runs in every status.

`HOLDFAST_FUZZ_EXAMPLES=100` asks more often.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from django.core.wsgi import get_wsgi_application
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import CHECKS
from schemathesis.core.failures import Failure, FailureGroup
from schemathesis.generation.case import Case

from runs.models import Run, Status
from tests.api.conftest import Cast, Desk

EXAMPLES = int(os.environ.get("HOLDFAST_FUZZ_EXAMPLES", "8"))  # a verb and mode
CHECKED = [
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "negative_data_rejection",
    "unsupported_method",
]
ONE_BY_ONE = settings(
    max_examples=EXAMPLES,
    derandomize=True,
    database=None,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)


class World:
    """What a caller could know: runs in every status, their entries, an agent, and the token of each of the cast."""

    def __init__(self, cast: Cast, desk: Desk) -> None:
        olga = cast("olga")
        asked = [
            ("desk", {"amount_cents": 1}), ("desk", {"amount_cents": 9_000}), ("parcels", None), ("fails", None),
            ("asker", None), ("waiter", None), ("parent", 2), ("patient", None), ("sleeper", 3600), ("desk", {}),
        ]  # fmt: skip
        made = [olga.post("/runs", {"agent": agent, "input": input}).json()["id"] for agent, input in asked]
        desk.work()
        olga.post(f"/runs/{made[8]}/cancel", {"reason": "test"})
        olga.post(f"/runs/{made[5]}/hold", {"reason": "test"})
        desk.work()
        Run.objects.filter(id=made[7]).update(status=Status.QUARANTINED)
        Run.objects.filter(id=made[9]).update(status=Status.WAITING_FOR_VERSION)
        olga.post("/runs", {"agent": "desk", "input": {"amount_cents": 1}})  # stays queued
        olga.post("/gates", {"scope": "tool:nothing", "reason": "test"})
        drained = olga.post("/drains", {"scope": "worker:nobody", "reason": "test"}).json()["id"]
        self.drains = [drained, drained + 1]
        self.runs = [str(run_id) for run_id in Run.objects.values_list("id", flat=True)]
        self.tokens = [cast(name).token for name in ("max", "max", "max", "max", "olga", "ada", "victor")]

    def fill(self, case: Case, data: Any) -> None:
        """A random id is never the id of a run: three of four calls meet what there is."""
        mostly = st.sampled_from([True, True, True, False])
        known: dict[str, Any] = {
            "ref": st.sampled_from(self.runs), "name": st.just("desk"), "seq": st.integers(1, 12),
            "gate_id": st.integers(1, 3), "drain_id": st.sampled_from(self.drains),
        }  # fmt: skip
        for name in case.path_parameters or {}:
            if name in known and data.draw(mostly, label=f"known {name}"):
                case.path_parameters[name] = data.draw(known[name], label=name)
        if not isinstance(case.body, dict):
            return
        said = {
            "agent": ["desk", "waiter", "fails"],
            "scope": ["all", "tool:refund"],
            "seq": [2, 3, 4],
            "at": [1, 2, 3],
        }
        for name in said.keys() & case.body.keys():
            if data.draw(mostly, label=f"known {name}"):
                case.body[name] = data.draw(st.sampled_from(said[name]), label=name)
        if isinstance(case.body.get("wait"), int | float):
            case.body["wait"] = min(case.body["wait"], 0.01)


@pytest.fixture(autouse=True)
def nobody_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """For a worker that is to decide a journal again: none does here."""
    for seconds in ("recovery.replay_api.WAIT", "recovery.pins.WAIT"):
        monkeypatch.setattr(seconds, 0.01)


@pytest.fixture
def schema(dsn: str) -> Iterator[Any]:
    yield schemathesis.openapi.from_wsgi("/api/v1/openapi.json", get_wsgi_application())


def test_the_description_is_a_valid_openapi_document(schema: Any) -> None:
    schema.validate()


@pytest.mark.slow
@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=["allowed", "not allowed"])
def test_every_verb_answers_as_described(mode: GenerationMode, schema: Any, cast: Cast, desk: Desk) -> None:
    world = World(cast, desk)
    assert set(Run.objects.values_list("status", flat=True)) >= set(Status) - {Status.RUNNING}
    operations = [found.ok() for found in schema.get_all_operations()]
    # A stream has no end while its run has none: tests/api/test_stream.py.
    faults = [fault for each in operations if not each.path.endswith("/stream") if (fault := fuzz(each, mode, world))]
    assert not faults, "\n\n".join(faults)


def fuzz(operation: Any, mode: GenerationMode, world: World) -> str:
    """What is wrong with the answers to one verb; empty if nothing is."""

    @ONE_BY_ONE
    @given(data=st.data())
    def call(data: Any) -> None:
        case = data.draw(operation.as_strategy(generation_mode=mode), label="case")
        if mode.is_positive:
            world.fill(case, data)
        token = data.draw(st.sampled_from(world.tokens), label="token")
        case.call_and_validate(headers={"Authorization": f"Bearer {token}"}, checks=CHECKS.get_by_names(CHECKED))

    try:
        call()
    except (FailureGroup, Failure) as fault:
        return f"{operation.label}: {fault}: {getattr(fault, 'exceptions', '')}"
    return ""
