"""A stand-in for people: does what runs wait for, through the commands that people use."""

from __future__ import annotations

import json
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from recovery.commands import reconcile_intent
from recovery.errors import RecoveryError
from runs.approvals import SHELL_GROUPS, decide_approval
from runs.commands import answer_ask, release_run, signal_run
from runs.errors import RunsError
from runs.models import Run, Status
from runs.queries import state_of
from runs.slots import Slot

ACTOR = "chaos"
SERVED = (Status.AWAITING_APPROVAL, Status.WAITING, Status.NEEDS_RECONCILIATION, Status.QUARANTINED)
PLAIN_ANSWERS: dict[str, Any] = {
    "string": "yes", "integer": 1, "number": 1, "boolean": True, "array": [], "object": {}, "null": None,
}  # fmt: skip


@dataclass(slots=True)
class StandIn:
    """`ledger`: address of the effects; without it nothing in doubt is settled. `served` counts what was done."""

    ledger: str | None = None
    served: Counter[str] = field(default_factory=Counter)

    def serve(self, runs: Iterable[Run]) -> int:
        """Does for each run what it waits for; how much that was."""
        before = self.served.total()
        for run in runs:
            if run.status == Status.QUARANTINED:
                self._do("released", release_run, run_id=run.id, reason="its worker was killed on purpose")
            elif run.status in SERVED and (run.status != Status.WAITING or waits_for_somebody(run)):
                for slot in state_of(run.id).unsettled():
                    self._serve(run, slot)
        return self.served.total() - before

    def _serve(self, run: Run, slot: Slot) -> None:
        at: dict[str, Any] = {"run_id": run.id, "seq": slot.seq}
        if slot.state == "awaiting_approval" and slot.approval is not None:
            digest = slot.approval.digest
            # One of as many as have to agree, and none of them who started it.
            approver = f"{ACTOR}, approver {len(slot.approval.grants) + 1}"
            self._do("approved", decide_approval, **at, verdict="approve", digest=digest, note="a rehearsal",
                     groups=SHELL_GROUPS, actor=approver)  # fmt: skip
        elif slot.kind == "ask":
            self._do("answered", answer_ask, **at, value=answer_for(slot))
        elif slot.kind == "signal":
            self._do("signalled", signal_run, run_id=run.id, name=slot.signal, signal_id=f"chaos-{slot.step}")
        elif slot.in_doubt and self.ledger and run.status == Status.NEEDS_RECONCILIATION:
            verdict = "happened" if acted(self.ledger, slot.key) else "never_happened"
            self._do("settled", reconcile_intent, **at, verdict=verdict, evidence="the ledger of effects",
                     attempt=len(slot.attempts))  # fmt: skip

    def _do(self, verb: str, command: Callable[..., Any], **given: Any) -> None:
        try:
            command(**{"actor": ACTOR} | given)
        except (RunsError, RecoveryError):
            return  # somebody was quicker, or it cannot be done: it stays parked, with its reason
        self.served[verb] += 1


def waits_for_somebody(run: Run) -> bool:
    """As its row says, so that no journal is read of those that sleep or wait for their children."""
    return "asks:" in run.reason or "signal" in run.reason


def answer_for(slot: Slot) -> Any:
    """The first option, or something of the asked type."""
    schema = slot.body["schema"]
    options = slot.body.get("options") or schema.get("enum")
    if options:
        return options[0]
    return schema["const"] if "const" in schema else PLAIN_ANSWERS.get(schema.get("type", ""))


def acted(ledger: str, key: str) -> int:
    """How often something acted under this key."""
    with urllib.request.urlopen(f"{ledger}/effects?key={quote(key)}", timeout=10) as answer:
        return int(json.load(answer)["total"])
