"""Fills a database for tests of scale with runs that look real: several agents, every status, ages over thirty days.

Every journal is one that the engine could have written: its chain verifies, and its fold agrees with the run's row.
No worker serves the releases, so nothing ever executes these runs.
"""

from __future__ import annotations

import random
import secrets
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any
from uuid import UUID

from django.db import connection, transaction

from journal.copying import PastAppend, copy_journals, make_partition_of
from journal.encoding import canonical
from journal.entries import Draft, Kind
from runs.digests import key_of
from runs.engine.projections import intent_record
from runs.errors import BadInput
from runs.models import ENDED, Release, Run, Status
from runs.policies import ANY_ONE
from runs.slots import Approval, Slot

BATCH = 2_000  # runs a transaction
DAYS = 30
VERSION = "generated"
FEWEST_ENTRIES = 5  # below, only runs that ended can be told

# Agent, weight, what it reads, what it does: name, effect class, an argument.
AGENTS: dict[str, tuple[int, list[tuple[str, str, str]]]] = {
    "invoice-chaser": (35, [("find_invoice", "read", "invoice"), ("send_reminder", "keyed", "invoice")]),
    "support-triage": (30, [("read_ticket", "read", "ticket"), ("route_ticket", "keyed", "ticket")]),
    "stock-refill": (20, [("count_stock", "read", "article"), ("order_goods", "probed", "article")]),
    "contract-review": (10, [("load_contract", "read", "contract"), ("file_opinion", "keyed", "contract")]),
    "card-dispute": (5, [("load_dispute", "read", "dispute"), ("call_bank", "unkeyed", "dispute")]),
}
# Of 1000 runs; the last entries of each, and how many they are.
STATUSES: dict[Status, int] = {
    Status.DONE: 838, Status.FAILED: 50, Status.CANCELLED: 20, Status.AWAITING_APPROVAL: 25,
    Status.NEEDS_RECONCILIATION: 12, Status.WAITING: 25, Status.HELD: 12, Status.QUARANTINED: 4,
    Status.WAITING_FOR_VERSION: 4, Status.QUEUED: 6, Status.RUNNING: 4,
}  # fmt: skip
REGIONS = ("eu-west", "eu-north", "us-east")
PEOPLE = ("olga", "ada", "max")
WHY_FAILED = ("the invoice is unknown", "the bank refuses the card", "the warehouse does not answer", "no such ticket")


def generate(runs: int, entries_per_run: int, seed: int = 0, told: Callable[[int], None] = lambda count: None) -> None:
    """`runs` runs of `entries_per_run` entries each; `told` hears how many were written since it heard last.

    The same seed gives the same stories, under other ids. Raises BadInput.
    """
    if runs < 0 or entries_per_run < 2:
        raise BadInput("Generate 0 or more runs of at least 2 entries each.")
    rng = random.Random(seed)
    now = datetime.now(UTC)
    oldest = now - timedelta(days=DAYS)
    make_partition_of(oldest)
    releases = {agent: release_of(agent) for agent in AGENTS}
    for first in range(0, runs, BATCH):
        size = min(BATCH, runs - first)
        starts = [oldest + (now - oldest) * ((first + n + rng.random()) / runs) for n in range(size)]
        stories = [Story(rng, releases, start, now, entries_per_run) for start in starts]
        with transaction.atomic():
            copy_journals((story.run.id, story.appends) for story in stories)
            Run.objects.bulk_create([story.run for story in stories])
        told(size)
    with connection.cursor() as cursor:
        cursor.execute(
            "ANALYZE runs_run, journal_head, journal_entry"
        )  # plans for an empty table would stay for a while


def release_of(agent: str) -> Release:
    tools = [contract_of(*tool) for tool in AGENTS[agent][1]]
    content = {"agent": agent, "version": VERSION, "driver": "decide", "model": None, "tools": tools}
    release_id = sha256(canonical(content)).hexdigest()
    rest = {"agent": agent, "version": VERSION, "content": content}
    return Release.objects.get_or_create(id=release_id, defaults=rest)[0]


def contract_of(name: str, effect: str, argument: str) -> dict[str, Any]:
    """As `Tool.contract` tells it."""
    parameters = {"type": "object", "properties": {argument: {"type": "string"}}, "required": [argument]}
    return {
        "name": name, "parameters": parameters, "effect": effect, "probe": effect == "probed", "approval": False,
        "timeout": 60, "max_in_flight": 60, "key_ttl": 86_400, "retry": {"attempts": 5, "backoff": 1.0}, "doc": "",
    }  # fmt: skip


def past_id(at: datetime) -> UUID:
    """A UUIDv7 of that time, as holdfast_uuid7() would have made it."""
    micros = int(at.timestamp() * 1_000_000)
    fraction = micros % 1000 * 4096 // 1000
    return UUID(int=(micros // 1000) << 80 | 7 << 76 | fraction << 64 | 0b10 << 62 | secrets.randbits(62))


class Story:
    """One run: `appends` as its workers and people wrote them, `run` as its last projection left the row."""

    def __init__(
        self, rng: random.Random, releases: dict[str, Release], start: datetime, now: datetime, entries: int
    ) -> None:
        self.rng, self.at, self.now = rng, start, now
        self.agent = rng.choices(list(AGENTS), [weight for weight, _ in AGENTS.values()])[0]
        self.id = past_id(start)
        self.appends: list[PastAppend] = []
        self.pending: list[Draft] = []
        self.seq = self.step = self.calls = 0
        self.epoch = 0
        self.subject = f"{self.tools[0][2]}-{rng.randrange(100_000)}"
        self.intents: list[dict[str, Any]] = []
        self.wake_at: datetime | None = None
        self.reason = ""
        self.labels = {"customer": f"c-{rng.randrange(5_000)}", "region": rng.choice(REGIONS)}
        if rng.random() < 0.1:
            self.labels["tier"] = "gold"
        self.status = (
            rng.choices(list(STATUSES), list(STATUSES.values()))[0] if entries >= FEWEST_ENTRIES else Status.DONE
        )
        self.tell(releases[self.agent].id, entries)
        self.run = self.row(releases[self.agent])

    @property
    def tools(self) -> list[tuple[str, str, str]]:
        return AGENTS[self.agent][1]

    def tell(self, release_id: str, entries: int) -> None:
        labels = {"labels": self.labels}
        body = {
            "agent": self.agent,
            "input": {self.tools[0][2]: self.subject},
            "release": release_id,
            "code": "",
        } | labels
        self.started_by, self.release_id = "api:" + self.rng.choice(PEOPLE), release_id
        self.add(Kind.START, body, actor=self.started_by)
        self.commit(seconds=0.0)
        self.epoch = 1
        self.at += timedelta(seconds=self.rng.expovariate(2.0))
        ending, size = ENDINGS[self.status]
        left = entries - 1 - size
        while left >= 3:
            block, size = self.rng.choice([(block, size) for block, size in BLOCKS if size <= left])
            block(self)
            left -= size
        for _ in range(left):
            self.remark()
        ending(self)
        self.commit()

    # -- writing ----------------------------------------------------------------------------------------------------

    def add(
        self,
        kind: str,
        body: dict[str, Any],
        step: int | None = None,
        settles: int | None = None,
        actor: str = "worker",
    ) -> None:
        self.seq += 1
        self.pending.append(Draft(kind, body, step, settles, actor=actor))

    def commit(self, seconds: float = 0.8, by_person: bool = False) -> None:
        """What is pending was committed together, some time (`seconds` in the mean) after the append before."""
        if self.pending:
            late = min(self.at + timedelta(seconds=self.rng.expovariate(1 / seconds) if seconds else 0.0), self.now)
            self.at = late
            self.appends.append(PastAppend(late, self.epoch, self.pending, by_person))
            self.pending = []

    def say(self, kind: str, body: dict[str, Any], step: int | None = None, seconds: float = 600.0) -> None:
        """A person's append, after what the worker had to write."""
        self.commit()
        self.add(kind, body, step, actor=self.rng.choice(PEOPLE))
        self.commit(seconds, by_person=True)

    def plan(self) -> None:
        self.add(Kind.PLAN, {"seen": self.seq})

    def call(self, gate: str | None = None) -> int:
        """An intent; its step."""
        tool, effect, argument = self.tools[min(self.calls, 1)]
        self.step += 1
        self.calls += 1
        digest = sha256(f"{self.id}:{self.step}".encode()).hexdigest()
        body = {"tool": tool, "args": {argument: self.subject}, "key": key_of(self.id, self.step), "effect": effect}
        self.called: dict[str, Any] = body | {"digest": digest, "gate": gate}
        self.add(Kind.TOOL_CALL, self.called, self.step)
        if gate == "approval":
            asked = {"verdict": "requested", "digest": digest, "policy": ANY_ONE.content, "release": self.release_id}
            self.add(Kind.APPROVAL, asked, self.step, actor="system")
        return self.step

    def observe(self, step: int) -> None:
        result = {"id": f"{self.rng.getrandbits(32):08x}", "amount_cents": self.rng.randrange(100, 90_000)}
        self.add(Kind.OBS, {"outcome": "succeeded", "result": result, "source": "worker"}, step, settles=step)

    def unsettled(self, state: str, seq: int, attempt: int) -> None:
        """As `intent_record` would list it."""
        slot = Slot(self.step, "call", seq, self.at, self.called)
        if state == "awaiting_approval":
            digest = self.called["digest"]
            slot.approval = Approval("requested", seq + 1, self.at, "system", digest, requested_at=self.at)
        record = intent_record(slot, asked_by=self.started_by)
        self.intents.append(record | {"state": state, "since": self.at.isoformat(), "attempt": attempt})

    # -- what happened ----------------------------------------------------------------------------------------------

    def one_call(self) -> None:
        self.plan()
        step = self.call()
        self.commit()
        self.observe(step)

    def two_calls(self) -> None:
        self.plan()
        steps = [self.call(), self.call()]
        self.commit()
        for step in steps:
            self.observe(step)

    def retried_call(self) -> None:
        self.plan()
        step = self.call()
        self.commit()
        due = (self.at + timedelta(seconds=1)).timestamp()
        self.add(Kind.ERROR, {"error": "TransientError: 503 from the service", "due": due}, step)
        self.commit()
        self.add(Kind.ATTEMPT, {"attempt": 2, "source": "retry"}, step)
        self.commit(seconds=1.5)
        self.observe(step)

    def approved_call(self) -> None:
        self.plan()
        step = self.call(gate="approval")
        digest = self.pending[-1].body["digest"]
        self.say(Kind.APPROVAL, {"verdict": "granted", "digest": digest, "note": "as agreed"}, step)
        self.add(Kind.ATTEMPT, {"attempt": 1, "source": "approval"}, step)
        self.commit()
        self.observe(step)

    def sleep(self) -> None:
        self.set_timer(60.0)
        self.commit()
        self.add(Kind.TIMER, {"verb": "fired"}, self.step)

    def set_timer(self, seconds: float) -> datetime:
        self.plan()
        self.step += 1
        due = self.at + timedelta(seconds=seconds)
        self.add(Kind.TIMER, {"verb": "set", "due": due.timestamp(), "seconds": seconds}, self.step)
        return due

    def remark(self) -> None:
        self.say(Kind.NOTE, {"text": "looked at it; nothing to do"})

    # -- how it stands now ------------------------------------------------------------------------------------------

    def succeed(self) -> None:
        self.add(Kind.DONE, {"result": {"handled": self.subject, "steps": self.step}})

    def fail(self) -> None:
        self.reason = self.rng.choice(WHY_FAILED)
        self.add(Kind.DONE, {"error": {"reason": self.reason}})

    def cancel(self) -> None:
        self.say(Kind.CONTROL, {"verb": "cancel", "reason": "asked for by the customer"})
        self.add(Kind.DONE, {"cancelled": "asked for by the customer"})

    def ask_approval(self) -> None:
        self.plan()
        step = self.call(gate="approval")
        self.commit()
        self.unsettled("awaiting_approval", self.seq - 1, 0)
        self.reason = f"{self.intents[0]['tool']} (step {step}) waits for approval"

    def doubt(self) -> None:
        self.plan()
        step = self.call()
        self.commit()
        self.unsettled("in_doubt", self.seq, 1)
        self.add(Kind.OBS, {"outcome": "unknown", "error": "no answer within its timeout", "source": "worker"}, step)
        self.reason = f"{self.intents[0]['tool']} (step {step}) may have happened: nobody can be asked"

    def wait(self) -> None:
        due = self.set_timer((self.now - self.at).total_seconds() + self.rng.uniform(1, 30) * 86_400)
        self.wake_at = due
        self.reason = f"sleeping at {due:%Y-%m-%d %H:%M:%S} UTC"

    def hold(self) -> None:
        self.say(Kind.CONTROL, {"verb": "hold", "reason": "ask the customer first"})
        self.reason = f"held by {self.appends[-1].entries[0].actor}: ask the customer first"

    def quarantine(self) -> None:
        self.reason = "its worker died 3 times with no progress between"
        self.add(Kind.CONTROL, {"verb": "quarantine", "reason": self.reason}, actor="system")

    def strand(self) -> None:
        self.reason = f"waits for a worker that serves {self.agent}@{VERSION}"

    def stand(self) -> None:
        """It moves, or soon will: there is nothing to say."""

    def row(self, release: Release) -> Run:
        key = f"{self.subject}-{self.id.int & 0xFFFFFFFF:08x}" if self.rng.random() < 0.3 else None
        ended = self.at if self.status in ENDED else None
        return Run(
            id=self.id, agent=self.agent, release=release, status=self.status, reason=self.reason, since=self.at,
            wake_at=self.wake_at, epoch=self.epoch, as_of_seq=self.seq, labels=self.labels, intents=self.intents,
            request_key=key, created_at=self.appends[0].at, ended_at=ended,
            crashes=3 if self.status == Status.QUARANTINED else 0,
        )  # fmt: skip


BLOCKS: list[tuple[Callable[[Story], None], int]] = [
    (Story.one_call, 3), (Story.one_call, 3), (Story.one_call, 3), (Story.two_calls, 5), (Story.retried_call, 5),
    (Story.approved_call, 6), (Story.sleep, 3),
]  # fmt: skip
ENDINGS: dict[Status, tuple[Callable[[Story], None], int]] = {
    Status.DONE: (Story.succeed, 1), Status.FAILED: (Story.fail, 1), Status.CANCELLED: (Story.cancel, 2),
    Status.AWAITING_APPROVAL: (Story.ask_approval, 3), Status.NEEDS_RECONCILIATION: (Story.doubt, 3),
    Status.WAITING: (Story.wait, 2), Status.HELD: (Story.hold, 1), Status.QUARANTINED: (Story.quarantine, 1),
    Status.WAITING_FOR_VERSION: (Story.strand, 0), Status.QUEUED: (Story.stand, 0), Status.RUNNING: (Story.stand, 0),
}  # fmt: skip
