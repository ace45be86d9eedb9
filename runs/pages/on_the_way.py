"""Which runs that a worker holds are on the way to a checkpoint: a gate stops them there, or their worker drains."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from runs.models import Gate, Run, Status
from runs.open_gates import OpenGates, names_of
from runs.pages.sharing import shared

KEPT = 1.0  # seconds that the gates serve all who ask


def draining_among(runs: Iterable[Run]) -> frozenset[UUID]:
    """Their ids. A tool's gate stops calls, not runs. The runs come with their release and session."""
    held = [run for run in runs if run.status == Status.RUNNING and run.session is not None]
    gates = shared.get(("open gates",), KEPT, open_gates) if held else OpenGates()
    return frozenset(run.id for run in held if on_the_way(run, gates))


def open_gates() -> OpenGates:
    return OpenGates(dict(Gate.objects.filter(lifted_at=None).values_list("scope", "reason")))


def on_the_way(run: Run, gates: OpenGates) -> bool:
    session = run.session
    if session is None or session.ended_at is not None:  # nobody drives it: it is lost, not draining
        return False
    stops = gates.over_runs_of(run.agent, run.release.version)
    here = gates.over_place(names_of(session.name, session.pool), session.region)
    return stops is not None or here is not None or session.draining_at is not None
