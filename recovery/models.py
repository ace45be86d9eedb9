"""Operations of the recovery room: drains, and journals that are decided again. What they did stays for the record."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now


class Phase(models.TextChoices):
    """Of a drain. `stopping`: some worker may not have heard of the gate yet; `reaching`: runs are on their way to a
    checkpoint; `done`: none was left before the deadline; `handed_over`: some were, and resume does the rest."""

    STOPPING = "stopping"
    REACHING = "reaching"
    DONE = "done"
    HANDED_OVER = "handed_over"
    LIFTED = "lifted", "Called off"


class Drain(models.Model):
    """A gate with a deadline: its scope sends nothing more, its runs reach a checkpoint. Lifted, it is history."""

    scope = models.TextField()
    reason = models.TextField()
    owner = models.TextField()
    gate = models.OneToOneField("runs.Gate", models.PROTECT)
    created_at = models.DateTimeField(db_default=Now())
    deadline_at = models.DateTimeField()
    phase = models.CharField(max_length=12, choices=Phase, db_default=Phase.STOPPING)
    phase_at = models.DateTimeField(db_default=Now(), help_text="When the phase began.")
    in_flight = models.IntegerField(db_default=0, help_text="Runs that workers held in the scope when it was ordered.")
    ended_at = models.DateTimeField(null=True, help_text="When it was done, handed over or called off.")
    until_gone = models.BooleanField(
        db_default=False, help_text="Of a worker: its gate is lifted by itself once no process of that name is left."
    )
    report = models.JSONField(
        default=dict, help_text="How it ended: runs handed over with their calls, seconds of phases."
    )

    class Meta:
        constraints = [models.CheckConstraint(condition=models.Q(phase__in=Phase.values), name="recovery_drain_phase")]
        indexes = [
            models.Index(fields=["id"], name="recovery_drain_open", condition=models.Q(ended_at__isnull=True)),
        ]

    def __str__(self) -> str:
        return f"{self.scope}: {self.reason}"


class Purpose(models.TextChoices):
    """Why a journal is decided again: to compare; to move the run to another release; to start a fork from a part."""

    REPLAY = "replay"
    PIN = "pin"
    FORK = "fork"


class Replay(models.Model):
    """A journal that a worker serving `release` decides again, without any effect and without a change of the run."""

    run = models.ForeignKey("runs.Run", models.PROTECT)
    release = models.ForeignKey("runs.Release", models.PROTECT, db_index=False, help_text="Under which it is decided.")
    purpose = models.CharField(max_length=8, choices=Purpose, db_default=Purpose.REPLAY)
    at = models.BigIntegerField(null=True, help_text="The last entry that is looked at; NULL: all.")
    edits = models.JSONField(default=list, help_text="Of a fork: [{seq, value}], in the journal's tagged form.")
    asks_model = models.BooleanField(db_default=False, help_text="Whether a model is asked again, to compare.")
    actor = models.TextField()
    bulk_id = models.BigIntegerField(null=True, help_text="The bulk act that it belongs to.")
    created_at = models.DateTimeField(db_default=Now())
    dispatched_at = models.DateTimeField(null=True)
    dispatches = models.IntegerField(db_default=0)
    taken_by = models.UUIDField(null=True, help_text="The session of the worker that decides.")
    taken_at = models.DateTimeField(null=True)
    takes = models.IntegerField(db_default=0, help_text="How often a worker took it: each but the last died over it.")
    ended_at = models.DateTimeField(null=True)
    as_of_seq = models.BigIntegerField(null=True, help_text="The journal's end when it was read.")
    verdict = models.TextField(
        db_default="", help_text="same, diverged, incomplete; of a pin: compatible, fork needed, refused."
    )
    result = models.JSONField(null=True, help_text="See recovery.redecided.Result.")
    error = models.TextField(db_default="", help_text="Why there is no result.")

    class Meta:
        indexes = [
            models.Index(fields=["created_at"], name="recovery_replay_open", condition=models.Q(ended_at__isnull=True)),
            models.Index(fields=["bulk_id"], name="recovery_replay_bulk", condition=models.Q(bulk_id__isnull=False)),
        ]

    def __str__(self) -> str:
        return f"{self.purpose} of {self.run_id} under {self.release_id[:12]}"
