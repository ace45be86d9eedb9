"""Tables of the people who use the console: their tokens, scopes and views, what they ordered, and what they did."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models.functions import Now

from runs.models.runs import Run


class Token(models.Model):
    """An API token. Only its SHA-256 is kept."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE)
    digest = models.BinaryField(unique=True)
    name = models.TextField(blank=True)
    created_at = models.DateTimeField(db_default=Now())
    last_used_at = models.DateTimeField(null=True)
    expires_at = models.DateTimeField(null=True, help_text="NULL: never.")
    revoked_at = models.DateTimeField(null=True)
    revoked_by = models.TextField(blank=True, db_default="")

    def __str__(self) -> str:
        return f"token of {self.user}"


class AgentScope(models.Model):
    """A user with rows here sees and acts on runs of these agents alone; one without any, on all."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="agent_scopes")
    agent = models.TextField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "agent"], name="runs_agentscope_once")]

    def __str__(self) -> str:
        return f"{self.user} {self.agent}"


class AuditRecord(models.Model):
    """Who did what, when, through which door. Written with what it tells of; the database refuses to change it."""

    at = models.DateTimeField(db_default=Now())
    actor = models.TextField()
    role = models.TextField(blank=True, db_default="", help_text="The actor's roles at that time.")
    act = models.TextField(help_text="run.cancel, intent.approve, gate.place, token.create, login …")
    door = models.CharField(max_length=8, help_text="page, api, shell or system.")
    address = models.TextField(blank=True, db_default="", help_text="The client's network address, where there is one.")
    run = models.UUIDField(null=True, help_text="No foreign key: the record outlives whatever it tells of.")
    agent = models.TextField(blank=True, db_default="")
    subject = models.TextField(blank=True, db_default="", help_text="What else it was about: a scope, a user, a seq.")
    reason = models.TextField(blank=True, db_default="")
    detail = models.JSONField(db_default={})

    class Meta:
        indexes = [
            models.Index(fields=["-at", "-id"], name="runs_audit_newest"),
            models.Index(fields=["actor", "-id"], name="runs_audit_by_actor"),
            models.Index(fields=["act", "-id"], name="runs_audit_by_act"),
            models.Index(fields=["run", "-id"], name="runs_audit_by_run", condition=models.Q(run__isnull=False)),
        ]

    def __str__(self) -> str:
        return f"{self.actor} {self.act} {self.subject}".strip()


class SavedView(models.Model):
    """A query of the list of runs under a name: its owner's, or everybody's."""

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE)
    name = models.CharField(max_length=60)
    query = models.TextField(help_text="As in the list's address, without the leading question mark.")
    shared = models.BooleanField(default=False)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [models.UniqueConstraint(fields=["owner", "name"], name="runs_savedview_name")]

    def __str__(self) -> str:
        return self.name


class BulkAct(models.Model):
    """One verb on all runs that match a query, carried out by the sweeps, a run at a time."""

    verb = models.CharField(max_length=16)
    query = models.TextField(help_text="The query as its author saw it, for the record.")
    reason = models.TextField()
    actor = models.TextField()
    door = models.CharField(max_length=8)
    created_at = models.DateTimeField(db_default=Now())
    ended_at = models.DateTimeField(null=True)
    stopped_by = models.TextField(blank=True, db_default="")
    request_id = models.TextField(null=True, unique=True, help_text="The same order sent twice is one act.")
    release = models.ForeignKey(
        "runs.Release", models.PROTECT, null=True, db_index=False, help_text="Of a move: where its runs go."
    )
    judged = models.ForeignKey(
        "self", models.PROTECT, null=True, db_index=False, help_text="Of a move: the act that judged its runs."
    )

    class Meta:
        indexes = [models.Index(fields=["id"], name="runs_bulk_going", condition=models.Q(ended_at__isnull=True))]

    def __str__(self) -> str:
        return f"{self.verb}: {self.query}"


class BulkItem(models.Model):
    """A run that a bulk act takes in, chosen when it was ordered; `outcome` NULL until its turn came."""

    pk = models.CompositePrimaryKey("bulk_id", "run_id")
    bulk = models.ForeignKey(BulkAct, models.CASCADE, related_name="items", db_index=False)
    run = models.ForeignKey(Run, models.PROTECT, db_constraint=False, db_index=False)
    outcome = models.CharField(max_length=8, null=True, help_text="done, skipped or failed.")
    said = models.TextField(blank=True, db_default="", help_text="Why it was skipped or failed.")
    at = models.DateTimeField(null=True)

    class Meta:
        indexes = [
            models.Index(fields=["bulk", "run"], name="runs_bulk_open", condition=models.Q(outcome__isnull=True))
        ]

    def __str__(self) -> str:
        return f"{self.bulk_id}:{self.run_id} {self.outcome or 'open'}"
