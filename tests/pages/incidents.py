"""A run as an incident leaves it: two workers lost, two people who approved, a refund that nobody knows of."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.utils import timezone

from journal.append import new_run_id
from journal.copying import PastAppend, copy_journals
from journal.entries import Draft, Kind
from runs.models import Release, Run, Status, WorkerSession
from runs.short_ids import short_id
from tests.pages.journals import DIGEST

STAGES = ("Find the order", "Find the charge", "Read the ticket", "Check policy", "Ask two people", "Let it settle",
          "Refund", "Tell the customer")  # fmt: skip


def plan_at(stage: int) -> list[dict[str, str]]:
    return [{"done" if n < stage else "next" if n == stage else "later": name} for n, name in enumerate(STAGES)]


@dataclass
class Past:
    """Appends of a journal at times that are over, from `start` on."""

    start: datetime
    run_id: uuid.UUID = field(default_factory=new_run_id)
    appends: list[PastAppend] = field(default_factory=list)
    epoch: int = 0
    seq: int = 0
    step: int = 0

    def at(self, seconds: float, *entries: Draft, person: bool = False) -> int:
        self.seq += len(entries)
        self.appends.append(PastAppend(self.start + timedelta(seconds=seconds), self.epoch, entries, person))
        return self.seq

    def plan(self, thought: str, stage: int, **usage: float) -> Draft:
        body: dict[str, Any] = {"seen": self.seq, "thought": thought, "plan": plan_at(stage), "moves": []}
        return Draft(Kind.PLAN, body | {"usage": usage or {"input_tokens": 5_800, "output_tokens": 440}}, actor="model")

    def call(self, tool: str, gate: str | None = None, effect: str = "read", **args: Any) -> Draft:
        self.step += 1
        key = f"{self.run_id}:{self.step}"
        body = {"tool": tool, "args": args, "key": key, "effect": effect, "digest": DIGEST, "gate": gate}
        return Draft(Kind.TOOL_CALL, body, self.step)

    def obs(self, result: Any) -> Draft:
        body = {"outcome": "succeeded", "result": result, "source": "worker"}
        return Draft(Kind.OBS, body, self.step, settles=self.step)

    def taken_over(self, lost: WorkerSession, taker: WorkerSession) -> Draft:
        self.epoch += 1
        body = {"text": "taken over", "epoch": self.epoch, "from": str(lost.id), "session": str(taker.id)}
        return Draft(Kind.NOTE, body, actor="system")


def worker(name: str, heartbeat: datetime, ended: datetime | None = None) -> WorkerSession:
    return WorkerSession.objects.create(
        id=uuid.uuid4(), name=name, host="here", pid=1, pool="threads", concurrency=50, region="eu-west-1", serves=[],
        heartbeat_at=heartbeat, expires_at=heartbeat + timedelta(seconds=10), ended_at=ended,
        end_reason="process died" if ended else "",
    )  # fmt: skip


def pinned() -> Release:
    tools = [{"name": name, "effect": "read", "probe": True} for name in ("orders.get", "payments.refund")]
    content = {
        "agent": "refund-agent", "version": "v41", "tools": tools, "prompt": "You refund what was late.",
        "model": {"name": "lumen-3-large"}, "budget": {"tokens": 200_000, "cost": 2.0},
    }  # fmt: skip
    return Release.objects.create(id="04ab" * 16, agent="refund-agent", version="v41", content=content)


@transaction.atomic
def incident(ago: float = 1_800.0, lasts: float = 1_200.0) -> Run:
    """The run of the design, `ago` seconds old, in doubt about a refund of 24000 cents at seq 17; its last entry comes
    after `lasts` seconds."""
    past = Past(timezone.now() - timedelta(seconds=ago))
    release = pinned()
    start = {"agent": "refund-agent", "input": {"order": "5540-1187", "ticket": 88213}, "release": release.id,
             "code": "c71d" * 16}  # fmt: skip
    past.at(0, Draft(Kind.START, start, actor="support-desk"))
    first = worker("w-eu1-3f", past.start + timedelta(seconds=13.6), past.start + timedelta(seconds=43))
    second = worker("w-eu1-9a", past.start + timedelta(seconds=1051.3), past.start + timedelta(seconds=1081))
    third = worker("w-eu1-c2", timezone.now())
    past.epoch = 1
    past.at(2.1, past.plan("Look up order 5540-1187", 0), past.call("orders.get", order="5540-1187"))
    past.at(2.5, past.obs({"orders": 1, "total": 24_000, "delivered": "late"}))
    past.at(4.6, past.plan("Get the charge before deciding", 1), past.call("payments.get_charge", order="5540-1187"))
    past.at(5.2, past.obs({"charge": "ch_3Qx81fKm2", "refunded": None}))
    past.at(7.9, past.plan("Export thread and attachments", 2), past.call("tickets.export_thread", ticket=88213))
    past.at(44.1, past.taken_over(first, second))
    past.at(45.0, Draft(Kind.RECONCILE, {"verdict": "happened", "evidence": "status lookup by key"}, past.step,
                        actor="system"))  # fmt: skip
    past.at(46.4, past.obs({"file": "export.ndjson", "bytes": 41_800_000}))
    past.at(50.0, past.plan("Evaluate refund policy", 3), past.call("policy.evaluate", amount=24_000))
    past.at(50.5, past.obs({"allowed": True, "people": 2}))
    refund = past.call("payments.refund", "approval", "unkeyed", charge="ch_3Qx81fKm2", amount=24_000, currency="EUR",
                       reason="late_delivery", order="5540-1187", notify_customer=True)  # fmt: skip
    asked = Draft(Kind.APPROVAL, {"verdict": "requested", "digest": DIGEST}, past.step, actor="system")
    past.at(54.3, past.plan("Refund €240.00 to original card", 4), refund, asked)
    granted = {"verdict": "granted", "digest": DIGEST}
    past.at(411.0, Draft(Kind.APPROVAL, granted | {"note": "seen the thread"}, past.step, actor="ada"), person=True)
    past.at(920.0, Draft(Kind.APPROVAL, granted, past.step, actor="max"), person=True)
    past.at(1049.1, Draft(Kind.ATTEMPT, {"attempt": 1, "source": "approval"}, past.step))
    past.at(1084.8, past.taken_over(second, third))
    past.at(1088.0, Draft(Kind.RECONCILE, {"verdict": "undecided", "evidence": "the lookup timed out"}, past.step,
                          actor="system"))  # fmt: skip
    past.at(lasts, Draft(Kind.NOTE, {"text": "Asked the bank, they call back."}, actor="olga"), person=True)
    copy_journals([(past.run_id, past.appends)])
    intents = [{"seq": 17, "step": 5, "tool": "payments.refund", "state": "in_doubt", "attempt": 1, "deadline": None,
                "since": past.start.isoformat()}]  # fmt: skip
    return Run.objects.create(
        id=past.run_id, agent="refund-agent", release=release, status=Status.NEEDS_RECONCILIATION,
        reason="payments.refund (step 5) may have happened: the lookup timed out", epoch=past.epoch,
        as_of_seq=past.seq, intents=intents, created_at=past.start, labels={"desk": "berlin"}, region="eu-west-1",
        since=past.appends[-2].at,
    )  # fmt: skip


def url_of(run: Run) -> str:
    return f"/runs/{short_id(run.id)}"
