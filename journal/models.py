"""The journal's tables for lists and reads by the ORM. Writing goes through the committer and `append` only."""

from typing import Any, NoReturn

from django.db import models
from django.db.models.functions import Now


class ReadOnly(models.QuerySet[Any]):
    def _refuse(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError("the journal is written by journal.committer and journal.append only")

    create = update = delete = bulk_create = bulk_update = get_or_create = update_or_create = _refuse


class _Table(models.Model):
    objects = ReadOnly.as_manager()

    class Meta:
        abstract = True

    def save(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError("the journal is written by journal.committer and journal.append only")

    def delete(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError("journal entries are never changed or removed")


class Head(_Table):
    run_id = models.UUIDField(primary_key=True)
    epoch = models.BigIntegerField()
    verified_seq = models.BigIntegerField()
    verified_at = models.DateTimeField(null=True)
    last_steering_seq = models.BigIntegerField()
    last_seq = models.BigIntegerField()
    last_recorded_at = models.DateTimeField(null=True)
    last_hash = models.BinaryField()

    class Meta:
        managed = False
        db_table = "journal_head"


class JournalEntry(_Table):
    pk = models.CompositePrimaryKey("run_id", "seq")
    run_id = models.UUIDField()
    seq = models.BigIntegerField()
    epoch = models.BigIntegerField()
    recorded_at = models.DateTimeField()
    v = models.IntegerField()
    step = models.IntegerField(null=True)
    settles = models.IntegerField(null=True)
    kind = models.TextField()
    actor = models.TextField()
    request_id = models.TextField(null=True)
    body = models.BinaryField()

    class Meta:
        managed = False
        db_table = "journal_entry"


class BrokenChain(models.Model):
    """A journal whose chain was found broken and not yet found whole again."""

    run_id = models.UUIDField(primary_key=True)
    seq = models.BigIntegerField(help_text="Of the first fault; 0 stands for the head.")
    what = models.TextField()
    found_at = models.DateTimeField(db_default=Now())

    def __str__(self) -> str:
        return f"{self.run_id} {self.seq} {self.what}"
