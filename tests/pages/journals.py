"""Journals for the pages to show, written as the engine and the commands write them, without an engine."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django.db import connection, transaction
from django.db.models.functions import Now
from django.utils import timezone

from journal.append import append_person, create_head, new_run_id, raise_epoch
from journal.entries import Draft, Kind
from journal.read import read_head
from runs.models import Release, Run, Status, WorkerSession
from runs.short_ids import short_id

TOOLS = [{"name": "refund", "effect": "keyed", "probe": True}, {"name": "mail", "effect": "unkeyed", "probe": False}]
DIGEST = "6be1c07d" * 8


def release() -> Release:
    content = {"agent": "refund-desk", "version": "7", "tools": TOOLS}
    return Release.objects.get_or_create(id="9f2c" * 16, agent="refund-desk", version="7", content=content)[0]


def session(name: str = "w1", **fields: Any) -> WorkerSession:
    now = timezone.now()
    given: dict[str, Any] = {
        "host": "here", "pid": 1, "pool": "threads", "concurrency": 50, "serves": [release().id],
        "heartbeat_at": now, "expires_at": now + timedelta(seconds=60),
    }  # fmt: skip
    return WorkerSession.objects.create(id=uuid.uuid4(), name=name, **given | fields)


@dataclass
class Story:
    """A run and what was written to it. Each call appends one entry, all by the worker unless said."""

    run: Run = field(init=False)
    step: int = 0
    parent: Run | None = None
    parent_step: int | None = None
    input: Any = field(default_factory=lambda: {"order_id": "o-1"})

    def __post_init__(self) -> None:
        with transaction.atomic():
            run_id = new_run_id()
            create_head(run_id)
            self.run = Run.objects.create(
                id=run_id,
                agent=self.pin.agent,
                release=self.pin,
                parent=self.parent,
                parent_step=self.parent_step,
            )
        start = {"agent": self.pin.agent, "input": self.input, "release": self.pin.id, "code": "ab" * 32}
        self.write(Kind.START, start)

    @property
    def pin(self) -> Release:
        return release()

    @property
    def url(self) -> str:
        return f"/runs/{short_id(self.run.id)}"

    @property
    def last(self) -> int:
        return read_head(None, self.run.id).last_seq

    def write(self, kind: str, body: dict[str, Any], **fields: Any) -> int:
        """The new entry's seq."""
        with transaction.atomic():
            answer = append_person(self.run.id, [Draft(kind, body, **fields)], request_id=None, actor="worker")
        assert answer.last_seq is not None
        return answer.last_seq

    def plan(self, **said: Any) -> int:
        return self.write(Kind.PLAN, {"seen": 1} | said)

    def call(self, tool: str = "refund", gate: str | None = None, **args: Any) -> int:
        """The intent's seq; a gated one also asks for approval."""
        self.step += 1
        body = {
            "tool": tool,
            "args": args,
            "key": f"{self.run.id}:{self.step}",
            "effect": "keyed",
            "digest": DIGEST,
            "gate": gate,
        }
        seq = self.write(Kind.TOOL_CALL, body, step=self.step)
        if gate == "approval":
            self.write(Kind.APPROVAL, {"verdict": "requested", "digest": DIGEST}, step=self.step, actor="system")
        return seq

    def opens(self, kind: str, **body: Any) -> int:
        """A step that waits: ASK, TIMER or CHILD; its seq."""
        self.step += 1
        return self.write(kind, body, step=self.step)

    def ask(self, question: str, schema: dict[str, Any] | None = None, **more: Any) -> int:
        return self.opens(Kind.ASK, question=question, schema=schema or {"type": "string"}, **more)

    def spawn(self, agent: str = "refund-desk", **more: Any) -> Story:
        """The child's story; its CHILD entry is the last of this one."""
        child = Story(parent=self.run, parent_step=self.step + 1)
        body = {"verb": "spawned", "agent": agent, "input": {"n": 1}, "child": str(child.run.id), "release": "x"}
        self.opens(Kind.CHILD, **body, **more)
        return child

    def result(self, value: Any = None, outcome: str = "succeeded", **more: Any) -> int:
        body = {"outcome": outcome, "result": value, "source": "worker"} | more
        settles = None if outcome == "unknown" else self.step
        return self.write(Kind.OBS, body, step=self.step, settles=settles)

    def claimed(self) -> int:
        """The epoch that a worker writes under from now on; what is written at epoch 0 later is a fork's copy."""
        return raise_epoch(self.run.id)

    def taken_over(self, by: WorkerSession) -> int:
        epoch = self.claimed()
        self.now_is(Status.RUNNING, epoch=epoch, session=by)
        return self.write(Kind.NOTE, {"text": "taken over", "epoch": epoch, "session": str(by.id)}, actor="system")

    def done(self, **body: Any) -> int:
        return self.write(Kind.DONE, body)

    def now_is(self, status: str, reason: str = "", **fields: Any) -> Story:
        Run.objects.filter(pk=self.run.pk).update(status=status, reason=reason, since=Now(), **fields)
        self.run.refresh_from_db()
        return self


def in_doubt() -> tuple[Story, int]:
    """A refund that nobody knows of, and its seq."""
    story = Story()
    story.plan(thought="Refund the order")
    seq = story.call(order_id="o-1", amount_cents=24_000)
    story.result(outcome="unknown", error="the connection was cut")
    return story.now_is(Status.NEEDS_RECONCILIATION, "refund (step 1) may have happened: the key may be forgotten"), seq


def awaiting_approval() -> tuple[Story, int]:
    story = Story()
    story.plan()
    seq = story.call(gate="approval", order_id="o-1", amount_cents=24_000)
    return story.now_is(Status.AWAITING_APPROVAL, "refund (step 1) waits for approval"), seq


def tampered(story: Story, seq: int) -> None:
    """Changes one entry behind the product's back, as only a superuser can."""
    with connection.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica")
        cursor.execute(
            "UPDATE journal_entry SET body = replace(encode(body, 'escape'), 'o-1', 'o-2')::bytea"
            " WHERE run_id = %s AND seq = %s",
            [story.run.id, seq],
        )
        cursor.execute("SET session_replication_role = DEFAULT")
