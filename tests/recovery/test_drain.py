"""Drains: a gate with a deadline; its phases, what is in flight, and what is told before, during and after."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db.models import F

from recovery import drains
from recovery.drains import advance_drains, extend_drain, lift_drain, order_drain, preview, progress
from recovery.errors import DrainEnded, DrainExists, DrainLifted, DrainNotFound, TimeoutInvalid
from recovery.models import Drain
from recovery.sweep import Sweep
from runs.errors import GateExists, GateScopeUnknown, ReasonMissing
from runs.gates import lift_gate, place_gate
from runs.models import AuditRecord, Gate, Run
from tests.rig.crew import Crew, start
from tests.rig.ledger import Ledger, wait_until


def order(scope: str = "all", timeout: float = 60, **more: Any) -> Drain:
    return order_drain(scope=scope, timeout=timeout, reason="deploy 8", actor="olga", **more)


def now(drain: Drain) -> Drain:
    advance_drains()
    return Drain.objects.select_related("gate").get(pk=drain.pk)


def test_a_drain_of_nothing_is_done_at_once_and_keeps_its_gate_until_it_is_lifted(crew: Crew) -> None:
    drain = now(order("agent:keyed"))
    assert (drain.phase, drain.in_flight, drain.gate.lifted_at) == ("done", 0, None)
    lifted = lift_drain(drain_id=drain.pk, reason="deployed", actor="max")
    assert (lifted.phase, lifted.gate.lifted_by) == ("done", "max"), "it was done, and stays so in the history"


def test_a_second_drain_of_a_scope_learns_of_the_first_and_others_may_overlap(crew: Crew) -> None:
    first = order("agent:keyed")
    with pytest.raises(DrainExists, match=f"olga ordered drain {first.pk} of agent:keyed at .*: deploy 8"):
        order("agent:keyed")
    order("all")
    place_gate(scope="tool:letter", reason="look", actor="max")
    with pytest.raises(GateExists):
        order("tool:letter")


def test_what_is_in_flight_is_told_with_its_call_and_whether_it_can_end_in_time(crew: Crew, ledger: Ledger) -> None:
    ledger.fault("charge", "delay", seconds=2)
    worker = crew.hire(lease=1.0)
    run_id = start("chain", {"steps": 2, "effect": "keyed"})
    release = Run.objects.get(id=run_id).release_id
    thread = threading.Thread(target=worker.advance, args=(run_id, release))
    thread.start()
    wait_until(lambda: ledger.calls(f"{run_id}:1"), "the call is under way")
    drain = order("agent:chain")
    seen = progress(drain)
    (one,) = seen.in_flight
    assert one.call is not None
    assert (one.run_id, one.worker, one.call.step, one.call.key) == (run_id, "w1", 1, f"{run_id}:1")
    assert [(b.name, b.count) for b in seen.blockers] == [(one.call.tool, 1)]
    assert seen.began_with == 1 and seen.at_checkpoint == 0 and seen.oldest_age is not None
    thread.join()
    wait_until(lambda: now(drain).phase == "done", "it comes to its checkpoint")
    run = Run.objects.get(id=run_id)
    assert (run.status, run.reason) == ("held", "gate agent:chain: deploy 8")
    assert progress(now(drain)).at_gate == 1
