"""Projections and registers of the runs room. The journal is the truth: a row of `Run` can be rebuilt from its entries.

Nobody changes a run row without holding its journal head (see docs/architecture.md, "Lock order").
"""

from __future__ import annotations

import json
from typing import Any

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.db.models.functions import Now
from django.utils.functional import cached_property

from runs.field_order import required_first


class Status(models.TextChoices):
    QUEUED = "queued"
    RUNNING = "running"
    AWAITING_APPROVAL = "awaiting_approval"
    NEEDS_RECONCILIATION = "needs_reconciliation"
    WAITING = "waiting"
    WAITING_FOR_VERSION = "waiting_for_version", "Stranded"
    HELD = "held"
    QUARANTINED = "quarantined"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


ENDED = (Status.DONE, Status.FAILED, Status.CANCELLED)
# Where a call in doubt waits for a person: elsewhere a worker asks, or sends again, by itself.
DOUBT_STANDS = (Status.NEEDS_RECONCILIATION, Status.HELD, Status.WAITING_FOR_VERSION)
DOUBT_STANDS_SQL = ", ".join(f"'{status}'" for status in DOUBT_STANDS)


class Stage(models.TextChoices):
    """What a release is to new runs: `current` takes them, `canary` its share of them; the others none unasked."""

    CANDIDATE = "candidate"
    CANARY = "canary"
    CURRENT = "current"
    RETIRING = "retiring"
    RETIRED = "retired"


class Release(models.Model):
    """One immutable contract of an agent; its id is the SHA-256 of the content, in hexadecimal."""

    id = models.CharField(primary_key=True, max_length=64)
    agent = models.TextField()
    version = models.TextField()
    content = models.JSONField(help_text="Tools with schemas, effect classes and policies; model and settings; prompt.")
    declared = models.TextField(db_default="", help_text="The same as text: jsonb forgets the order of fields.")
    created_at = models.DateTimeField(db_default=Now())
    stage = models.CharField(max_length=12, choices=Stage, db_default=Stage.CANDIDATE)
    share = models.SmallIntegerField(db_default=0, help_text="Of a canary: how many of 100 new runs it takes.")
    staged_at = models.DateTimeField(db_default=Now(), help_text="When its stage or its share last changed.")
    staged_by = models.TextField(db_default="", help_text="Who changed it; empty: nobody has yet.")
    replaced = models.ForeignKey(
        "self", models.PROTECT, null=True, related_name="+", db_index=False,
        help_text="The release that was current before this one became it: what a rollback returns to.",
    )  # fmt: skip

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["agent", "version", "id"], name="runs_release_content"),
            models.UniqueConstraint(
                fields=["agent"], condition=models.Q(stage=Stage.CURRENT), name="runs_release_one_current"
            ),
            models.UniqueConstraint(
                fields=["agent"], condition=models.Q(stage=Stage.CANARY), name="runs_release_one_canary"
            ),
            models.CheckConstraint(condition=models.Q(stage__in=Stage.values), name="runs_release_stage"),
            models.CheckConstraint(condition=models.Q(share__range=(0, 100)), name="runs_release_share"),
        ]
        indexes = [models.Index(fields=["agent", "version"], name="runs_release_version")]

    def __str__(self) -> str:
        return f"{self.agent}@{self.version}"

    @cached_property
    def contract(self) -> dict[str, Any]:
        """The content for people: with fields in the order in which the agent's code declares them."""
        found: dict[str, Any] = json.loads(self.declared) if self.declared else required_first(self.content)
        return found


class WorkerSession(models.Model):
    """A worker process's life: one heartbeat, one lease for all its runs."""

    id = models.UUIDField(primary_key=True)
    name = models.TextField()
    host = models.TextField()
    pid = models.IntegerField()
    pool = models.TextField()
    concurrency = models.IntegerField()
    region = models.TextField(blank=True)
    serves = ArrayField(models.CharField(max_length=64), help_text="Ids of the releases that it can execute.")
    codes = models.JSONField(default=dict, help_text="Code digest of each agent, by release id.")
    started_at = models.DateTimeField(db_default=Now())
    pool_started_at = models.DateTimeField(null=True, help_text="Of a child: when the process began whose child it is.")
    heartbeat_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    draining_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    end_reason = models.TextField(blank=True)
    totals = models.JSONField(null=True, db_default={}, help_text="What it counted; NULL once it is in runs_tally.")

    class Meta:
        indexes = [
            models.Index(fields=["expires_at"], name="runs_session_live", condition=models.Q(ended_at__isnull=True)),
            models.Index(fields=["-ended_at"], name="runs_session_ended", condition=models.Q(ended_at__isnull=False)),
            models.Index(fields=["id"], name="runs_session_counted", condition=models.Q(totals__isnull=False)),
            GinIndex(fields=["serves"], name="runs_session_serves"),
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.host}:{self.pid})"


class Run(models.Model):
    id = models.UUIDField(primary_key=True)
    agent = models.TextField()
    release = models.ForeignKey(Release, models.PROTECT, db_index=False)
    status = models.CharField(max_length=24, choices=Status, db_default=Status.QUEUED)
    reason = models.TextField(blank=True, help_text="Why it does not move, and what releases it.")
    since = models.DateTimeField(db_default=Now(), help_text="When the status last changed.")
    wake_at = models.DateTimeField(null=True, help_text="When the sweep sends it to a worker by itself.")
    session = models.ForeignKey(WorkerSession, models.PROTECT, null=True)
    epoch = models.BigIntegerField(db_default=0)
    as_of_seq = models.BigIntegerField(
        db_default=0, help_text="The entry up to which this row is a fold of the journal."
    )
    crashes = models.IntegerField(db_default=0, help_text="Crashes at a claim with no progress between them.")
    crash_seq = models.BigIntegerField(db_default=0, help_text="The journal's end at the last counted crash.")
    taken_over_at = models.DateTimeField(null=True)
    dispatched_at = models.DateTimeField(null=True)
    dispatches = models.IntegerField(db_default=0, help_text="Messages sent since it last moved; spaces the next one.")
    request_key = models.TextField(null=True)
    request_digest = models.BinaryField(null=True)
    labels = models.JSONField(default=dict)
    intents = models.JSONField(
        default=list, help_text="Unsettled intents at the last park: seq, step, tool, state, since, deadline."
    )
    parent = models.ForeignKey("self", models.PROTECT, null=True, related_name="children", db_index=False)
    parent_step = models.IntegerField(null=True, help_text="The parent's step that spawned it.")
    parent_told = models.BooleanField(db_default=False, help_text="Whether its end has made the parent due.")
    awaits = ArrayField(models.UUIDField(), db_default=[], help_text="Children that it waited for at its last park.")
    awaits_signals = models.JSONField(db_default=[], help_text="Names of signals that it waited for at its last park.")
    awaits_any = models.BooleanField(db_default=False, help_text="Whether one of them is enough.")
    priority = models.SmallIntegerField(db_default=0, help_text="0 to 9; a higher one is claimed sooner.")
    deadline_at = models.DateTimeField(null=True, help_text="When it is cancelled if it has not ended.")
    business_id = models.TextField(null=True, help_text="`label:value` that only one open run of the agent may have.")
    over_limit = models.BooleanField(
        db_default=False, help_text="Queued for a place among its agent's runs in flight: sent when one is let go."
    )
    at = models.TextField(db_default="", help_text="The tool or wait that it stood at when it was last let go.")
    tools = ArrayField(
        models.TextField(), db_default=[], help_text="Tools called so far, as of when it was last let go."
    )
    tokens = models.BigIntegerField(db_default=0, help_text="As of when it was last let go, like its cost.")
    cost = models.FloatField(db_default=0.0)
    person_acted = models.BooleanField(db_default=False, help_text="Whether a person decided something in it.")
    denials = models.IntegerField(db_default=0, help_text="Calls that a person denied, as of when it was last let go.")
    doubts = models.IntegerField(db_default=0, help_text="Calls that were ever in doubt, as of then too.")
    forked_from = models.ForeignKey("self", models.PROTECT, null=True, related_name="forks", db_index=False)
    forked_at = models.BigIntegerField(null=True, help_text="The last entry that was copied from there.")
    lineage = models.UUIDField(null=True, help_text="The first run of its family of forks; NULL: nobody forked it.")
    region = models.TextField(db_default="", help_text="Of the worker that last let it go.")
    input = models.BinaryField(null=True, help_text="A stateless run's input, in the journal's encoding.")
    ending = models.BinaryField(null=True, help_text="A stateless run's ending, as a DONE entry would tell it.")
    created_at = models.DateTimeField(db_default=Now())
    ended_at = models.DateTimeField(null=True)

    class Meta:
        permissions = [
            ("start_run", "Start runs"),
            ("control_run", "Cancel, hold, resume, retry, release, signal and note runs"),
            ("answer_ask", "Answer a run's questions"),
            ("approve_intent", "Approve, reject, change or question intents"),
            ("reconcile_intent", "Reconcile intents in doubt"),
            ("place_gate", "Place and lift gates"),
            ("act_in_bulk", "Act on all runs that match a query"),
            ("save_view", "Keep views of the list of runs"),
            ("share_view", "Share views with everybody"),
            ("see_audit", "Read the audit list"),
            ("export_audit", "Export the audit list"),
            ("stage_release", "Promote and retire releases, set the share of a canary"),
            ("roll_back_release", "Give new runs to the release before again"),
            ("repin_run", "Move runs to another release"),
            ("fork_run", "Start runs from a part of another's journal"),
            ("order_drain", "Drain, extend and lift drains"),
            ("administer", "Manage tokens, scopes and workers"),
        ]
        constraints = [
            models.UniqueConstraint(fields=["agent", "request_key"], name="runs_run_request_key"),
            models.UniqueConstraint(
                fields=["parent", "parent_step"],
                condition=models.Q(parent__isnull=False),
                name="runs_run_one_child_a_step",
            ),
            models.UniqueConstraint(
                fields=["agent", "business_id"],
                condition=models.Q(business_id__isnull=False, ended_at__isnull=True),
                name="runs_run_business_id",
            ),
            models.CheckConstraint(condition=models.Q(status__in=Status.values), name="runs_run_status"),
            models.CheckConstraint(condition=models.Q(priority__range=(0, 9)), name="runs_run_priority"),
        ]
        indexes = [
            models.Index(fields=["status", "-id"], include=["agent"], name="runs_run_by_status"),
            models.Index(fields=["agent", "-id"], name="runs_run_by_agent"),
            models.Index(fields=["release", "-id"], name="runs_run_by_release"),
            models.Index(
                fields=["request_key"], name="runs_run_by_request_key", condition=models.Q(request_key__isnull=False)
            ),
            models.Index(fields=["wake_at"], name="runs_run_due", condition=models.Q(wake_at__isnull=False)),
            models.Index(fields=["session"], name="runs_run_by_session", condition=models.Q(session__isnull=False)),
            models.Index(fields=["dispatched_at"], name="runs_run_queued", condition=models.Q(status=Status.QUEUED)),
            models.Index(fields=["id"], name="runs_run_with_intents", condition=~models.Q(intents=[])),
            models.Index(
                fields=["id"],
                name="runs_run_parent_untold",
                condition=models.Q(parent__isnull=False, ended_at__isnull=False, parent_told=False),
            ),
            models.Index(
                fields=["deadline_at"],
                name="runs_run_deadline",
                condition=models.Q(deadline_at__isnull=False, ended_at__isnull=True),
            ),
            models.Index(
                fields=["release", "-priority", "id"],
                name="runs_run_urgent",
                condition=models.Q(status=Status.QUEUED, priority__gt=0),
            ),
            models.Index(
                fields=["agent", "-priority", "id"],
                name="runs_run_over_limit",
                condition=models.Q(status=Status.QUEUED, over_limit=True),
            ),
            models.Index(
                fields=["business_id"], name="runs_run_by_business_id", condition=models.Q(business_id__isnull=False)
            ),
            GinIndex(fields=["labels"], name="runs_run_labels", opclasses=["jsonb_path_ops"]),
            GinIndex(fields=["tools"], name="runs_run_tools"),
            models.Index(fields=["-cost"], name="runs_run_costly", condition=models.Q(cost__gt=0)),
            models.Index(
                fields=["ended_at"],
                include=["status", "person_acted", "agent"],
                name="runs_run_ended",
                condition=models.Q(ended_at__isnull=False),
            ),
            models.Index(fields=["region", "-id"], name="runs_run_by_region", condition=~models.Q(region="")),
            models.Index(fields=["-id"], name="runs_run_taken_over", condition=models.Q(epoch__gt=1)),
            models.Index(fields=["-id"], name="runs_run_taken_from", condition=models.Q(taken_over_at__isnull=False)),
            models.Index(
                fields=["-id"],
                name="runs_run_acted",
                condition=models.Q(person_acted=True) | models.Q(status=Status.CANCELLED),
            ),
            models.Index(fields=["since", "id"], name="runs_run_standing", condition=models.Q(ended_at__isnull=True)),
            models.Index(
                fields=["at", "-id"],
                name="runs_run_by_at",
                condition=models.Q(ended_at__isnull=True) & ~models.Q(at=""),
            ),
            models.Index(
                fields=["forked_from"], name="runs_run_by_source", condition=models.Q(forked_from__isnull=False)
            ),
            models.Index(fields=["lineage"], name="runs_run_by_lineage", condition=models.Q(lineage__isnull=False)),
            models.Index(fields=["-tokens"], name="runs_run_by_tokens", condition=models.Q(tokens__gt=0)),
            models.Index(
                fields=["-id"], name="runs_run_in_doubt", condition=models.Q(intents__contains=[{"state": "in_doubt"}])
            ),
        ]

    def __str__(self) -> str:
        return f"{self.agent} {self.id}"


class Tally(models.Model):
    """The sum of what ended sessions counted, by name."""

    name = models.TextField(primary_key=True)
    total = models.FloatField()

    def __str__(self) -> str:
        return f"{self.name} {self.total:g}"


class Gate(models.Model):
    """A row that stops dispatch in its scope: `all`, `agent:X`, `release:X@V`, `worker:W`, `region:R`, `tool:T`."""

    scope = models.TextField()
    reason = models.TextField()
    actor = models.TextField()
    created_at = models.DateTimeField(db_default=Now())
    lifted_at = models.DateTimeField(null=True)
    lifted_by = models.TextField(blank=True, db_default="")
    lift_reason = models.TextField(blank=True, db_default="")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["scope"], condition=models.Q(lifted_at__isnull=True), name="runs_gate_once")
        ]

    def __str__(self) -> str:
        return f"{self.scope}: {self.reason}"


class Throttle(models.Model):
    """The row under whose lock a limit is judged: `tool:T` and the value counted by, `rate:T`, or `agent:X`."""

    pk = models.CompositePrimaryKey("scope", "key")
    scope = models.TextField()
    key = models.TextField(blank=True)
    at_once = models.IntegerField(null=True, help_text="Of an agent: runs in flight, as a claim last said.")
    sent = ArrayField(models.FloatField(), db_default=[], help_text="The last sends of a rate, POSIX seconds.")

    def __str__(self) -> str:
        return f"{self.scope} {self.key}".strip()


class Permit(models.Model):
    """A call's place in the line of its limit (`granted_at` NULL), then its right to be sent, until its outcome."""

    pk = models.CompositePrimaryKey("run_id", "step")
    run = models.ForeignKey(Run, models.PROTECT, db_constraint=False, db_index=False)
    step = models.IntegerField()
    attempt = models.IntegerField(help_text="The attempt that it is for.")
    scope = models.TextField(help_text="tool:T")
    key = models.TextField(null=True, help_text="The value that calls at once are counted by; NULL: only a rate.")
    at_once = models.IntegerField(null=True)
    priority = models.SmallIntegerField(db_default=0)
    asked_at = models.DateTimeField(db_default=Now())
    granted_at = models.DateTimeField(null=True)
    taken = models.BooleanField(db_default=False, help_text="Whether the run has heard that it was granted.")
    rate_key = models.TextField(null=True, help_text="The value that sends in a time are counted by.")
    not_before = models.FloatField(null=True, help_text="When it may be sent, of its rate: POSIX seconds.")

    class Meta:
        indexes = [
            models.Index(
                fields=["scope", "key", "-priority", "asked_at", "run", "step"],
                name="runs_permit_line",
                condition=models.Q(granted_at__isnull=True),
            ),
            models.Index(
                fields=["scope", "key"], name="runs_permit_granted", condition=models.Q(granted_at__isnull=False)
            ),
            models.Index(
                fields=["scope", "rate_key", "not_before"],
                name="runs_permit_booked",
                condition=models.Q(not_before__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.run_id}:{self.step} {self.scope} {self.key or ''}".strip()


class Evidence(models.Model):
    """A refused result: what a fenced worker found out after its run had gone to another epoch."""

    run = models.ForeignKey(Run, models.PROTECT)
    step = models.IntegerField()
    epoch = models.BigIntegerField()
    session = models.ForeignKey(WorkerSession, models.PROTECT, null=True)
    body = models.BinaryField(help_text="The refused OBS or ERROR body, in the journal's encoding.")
    outcome = models.CharField(max_length=16)
    recorded_at = models.DateTimeField(db_default=Now())
    adopted_seq = models.BigIntegerField(null=True, help_text="The OBS that adopted it.")

    class Meta:
        indexes = [
            models.Index(fields=["run", "step"], name="runs_evidence_step"),
            models.Index(fields=["recorded_at"], name="runs_evidence_newest"),
        ]

    def __str__(self) -> str:
        return f"{self.run_id}:{self.step} {self.outcome}"
