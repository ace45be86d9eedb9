"""One verb on all runs that match a query: counted first, ordered once, carried out by the sweeps a run at a time.

An item's outcome is committed with what was done to its run: whoever dies in between has done nothing, and whoever
comes next does it. Which command a verb is comes from recovery/bulk.py: one of them asks tools.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.core.exceptions import EmptyResultSet
from django.db import connection, transaction
from django.db.models import Count, Q, QuerySet
from django.utils import timezone

from journal.patience import patient
from runs import audit
from runs.access import CONTROL, RECONCILE, REPIN, Person, agents_of, sees
from runs.commands import given_reason
from runs.counts import capped_counts
from runs.errors import (
    BulkCountChanged,
    BulkEmpty,
    BulkEnded,
    BulkNotFound,
    BulkTarget,
    BulkTooLarge,
    BulkVerbUnknown,
    ReleaseNotFound,
)
from runs.models import BulkAct, BulkItem, Release, Run, Status
from runs.query_language import ENDED, OPEN, parse
from runs.query_meaning import BY_GATE, HAS, Reader, runs_meant
from runs.staging import find_release
from runs.texts import plain_text

log = logging.getLogger("holdfast.bulk")

type Command = Callable[..., Any]

MOST = 100_000  # runs of one act
LONG = 60.0  # seconds that taking them in may last
DOUBT = HAS["intent"] | Q(status=Status.NEEDS_RECONCILIATION)
PENDING = "an intent of it has no result yet"
JUDGE = "judge"  # what is ordered before a move; offered by itself nowhere
JUDGED_FIRST = "judged before a move"  # its reason, where nobody gives another: it changes nothing
NO_MOVE = "it has ended, is of another agent, or is pinned to that release already"


@dataclass(frozen=True, slots=True)
class Verb:
    """`acts`: which runs it is for. `passes`: which of those it leaves out, and why; `else_`: why not the others.

    `writes` says what will be written, and what not.
    """

    name: str
    button: str
    writes: str
    permission: str
    acts: Q
    else_: str
    passes: tuple[tuple[Q, str], ...] = ((DOUBT, PENDING),)
    look: str = ""
    icon: str = ""
    targeted: bool = False  # whether it needs a release that the runs go to

    def acts_on(self, release: Release | None) -> Q:
        if release is None:
            return self.acts
        return self.acts & Q(agent=release.agent) & ~Q(release=release.id)

    def parts(self, release: Release | None = None) -> list[tuple[Q, str]]:
        """Every run is in one of them: first those on which it acts (without a why), last those it is not for."""
        acts = self.acts_on(release)
        left, found = acts, []
        for q, why in self.passes:
            found.append((left & q, why))
            left &= ~q
        return [(left, ""), *found, (~acts, self.else_)]


VERBS = {
    verb.name: verb
    for verb in (
        Verb(
            "hold", "Hold", "Writes CONTROL(hold) into each. It stops at its next checkpoint, until it is resumed.",
            CONTROL, Q(status__in=[s for s in OPEN if s != Status.HELD]), "it has ended, or is held already",
            icon="s-held",
        ),
        Verb(
            "resume", "Resume", "Writes CONTROL(resume) into each. It goes on from its last entry, under its pin.",
            CONTROL, Q(status=Status.HELD), "it is not held",
            ((DOUBT, PENDING), (BY_GATE, "a gate holds it: it goes on when the gate is lifted")), icon="play",
        ),
        Verb(
            "release", "Release", "Writes CONTROL(release) into each. Its crashes are counted anew from here.",
            CONTROL, Q(status=Status.QUARANTINED), "it is not quarantined", icon="s-quarantined",
        ),
        Verb(
            "retry", "Retry now", "Writes CONTROL(retry) into each that waits for another attempt: it is due at once, "
            "under the same key.",
            CONTROL, Q(status__in=[Status.RUNNING, Status.WAITING]), "nothing of it waits to be tried again",
            icon="replay",
        ),
        Verb(
            "probe", "Ask the tool", "Writes RECONCILE(probe) for each intent in doubt. A worker asks its tool by key. "
            "Nothing is sent.",
            RECONCILE, HAS["intent"], "no intent of it is in doubt", (), icon="s-reconcile",
        ),
        Verb(
            "cancel", "Cancel", "Writes CONTROL(cancel) into each and all below it. No new call starts; an open one is "
            "awaited. This cannot be undone.",
            CONTROL, Q(status__in=OPEN), "it has ended", look="danger", icon="s-cancelled",
        ),
        Verb(
            "pin", "Re-pin", "A worker of the release that you choose decides each again first. PIN is written into "
            "those that decide the same, and they go on there; the others stay as they are.",
            REPIN, Q(status__in=OPEN, input=None), NO_MOVE, icon="k-PIN", targeted=True,
        ),
        Verb(
            JUDGE, "Judge for a move", "A worker of the release decides each again. Nothing is written into any of "
            "them.",
            REPIN, Q(status__in=OPEN, input=None), NO_MOVE, (), icon="k-PIN", targeted=True,
        ),
    )
}  # fmt: skip


def verb_named(name: str) -> Verb:
    if name not in VERBS:
        raise BulkVerbUnknown(f"{name[:60]!r}; there are {', '.join(VERBS)}.")
    return VERBS[name]


# -- counting ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StatusCount:
    """Of the runs of one status that match: on how many it would act, and how many it would leave out for what."""

    status: str
    acts: int
    skips: tuple[tuple[int, str], ...]


@dataclass(frozen=True, slots=True)
class Forecast:
    """What an act would do if it were ordered now. No number goes further than its cap and one."""

    verb: Verb
    query: str
    counts: tuple[StatusCount, ...]

    @property
    def acts(self) -> int:
        return sum(count.acts for count in self.counts)

    @property
    def skips(self) -> int:
        return sum(number for count in self.counts for number, _ in count.skips)


def forecast(
    verb: Verb, query: str, reader: Reader, release: Release | None = None, judged: BulkAct | None = None
) -> Forecast:
    """By status. Those that the verb is not for are counted less far. `judged`: only those that this act found
    compatible. Raises QueryInvalid, BulkTarget."""
    check_target(verb, release, judged)
    runs, statuses = runs_of(query, reader, judged), (*OPEN, *ENDED)
    *meant, (others, why_not) = verb.parts(release)
    close = capped_counts([runs.filter(q, status=status) for status in statuses for q, _ in meant], MOST)
    far = capped_counts([runs.filter(others, status=status) for status in statuses])
    counts = []
    for at, status in enumerate(statuses):
        numbers = [*close[at * len(meant) : (at + 1) * len(meant)], far[at]]
        reasons = [why for _, why in meant] + [why_not]
        skips = tuple((n, why) for n, why in zip(numbers[1:], reasons[1:], strict=True) if n)
        if numbers[0] or skips:
            counts.append(StatusCount(status, numbers[0], skips))
    return Forecast(verb, query, tuple(counts))


def runs_of(query: str, reader: Reader, judged: BulkAct | None) -> QuerySet[Run]:
    runs = runs_meant(parse(query), reader)
    return runs if judged is None else runs.filter(id__in=judged.items.filter(outcome="done").values("run_id"))


def check_target(verb: Verb, release: Release | None, judged: BulkAct | None) -> None:
    """Raises BulkTarget."""
    if verb.targeted != (release is not None):
        raise BulkTarget("needed" if verb.targeted else "useless")
    if judged is not None and (judged.verb != JUDGE or release is None or judged.release_id != release.id):
        raise BulkTarget("not judged")


def target_named(named: str | None, user: Person | None) -> Release | None:
    """A digest or agent@version, of an agent that the user sees. Raises ReleaseNotFound."""
    if not named:
        return None
    found = find_release(named)
    if not sees(user, found.agent):
        raise ReleaseNotFound(f"({plain_text(named)[:100]})")
    return found


# -- ordering ----------------------------------------------------------------------------------------------------------

TAKE_IN = "INSERT INTO runs_bulkitem (bulk_id, run_id) SELECT %s, chosen.id FROM ({}) AS chosen"


def order_bulk(
    *,
    verb: str,
    query: str,
    reason: str,
    actor: str,
    reader: Reader,
    expected: int | None = None,
    request_id: str | None = None,
    release: Release | None = None,
    judged: BulkAct | None = None,
) -> BulkAct:
    """Take in the runs that match now; the sweeps carry it out. `expected`: on how many at most, as was counted.

    `release`: of a move, where its runs go; `judged`: of those that match, only what this act found compatible. The
    same `request_id` again gives the same act. Raises BulkVerbUnknown, ReasonMissing, QueryInvalid, BulkTarget,
    BulkEmpty, BulkTooLarge, BulkCountChanged.
    """
    what, said = verb_named(verb), given_reason(reason)
    told = forecast(what, query, reader, release, judged)
    with transaction.atomic():
        if request_id is not None:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [request_id])
            if (before := BulkAct.objects.filter(request_id=request_id, actor=actor).first()) is not None:
                return before
        check_count(told, expected)
        act = BulkAct.objects.create(
            verb=verb, query=query, reason=plain_text(said), actor=actor, door=audit.door().name,
            request_id=request_id, release=release, judged=judged,
        )  # fmt: skip
        taken = take_in(act, what, query, reader)
        if taken > MOST:
            raise BulkTooLarge(MOST)
        to: dict[str, Any] = {} if release is None else {"release": str(release)}
        audit.record(actor, f"bulk.{verb}", subject=f"bulk {act.pk}", reason=said, query=query, runs=taken, **to)
        transaction.on_commit(wake_sweep)
    return act


def check_count(told: Forecast, expected: int | None) -> None:
    if told.acts > MOST:
        raise BulkTooLarge(MOST)
    if not told.acts:
        raise BulkEmpty(f"({told.verb.button.lower()})")
    if expected is not None and told.acts > expected:
        raise BulkCountChanged(expected, told.acts)


def take_in(act: BulkAct, verb: Verb, query: str, reader: Reader) -> int:
    """Those that it is for, with those it will leave out: each says why in the end."""
    meant = runs_of(query, reader, act.judged).filter(verb.acts_on(act.release))
    rows = meant.order_by().values("id")[: MOST + 1]
    try:
        sql, params = rows.query.sql_with_params()
    except EmptyResultSet:
        return 0
    with patient(LONG), connection.cursor() as cursor:
        cursor.execute(TAKE_IN.format(sql), [act.pk, *params])
        return int(cursor.rowcount)


def wake_sweep() -> None:
    with connection.cursor() as cursor:
        cursor.execute("NOTIFY holdfast_sweep")


def stop_bulk(*, act: BulkAct, actor: str) -> None:
    """When this returns, nothing more is done; what was done stays. Raises BulkEnded."""
    with transaction.atomic():
        if not BulkAct.objects.filter(pk=act.pk, ended_at=None).update(ended_at=timezone.now(), stopped_by=actor):
            raise BulkEnded(f"(bulk {act.pk})")
        audit.record(actor, "bulk.stop", subject=f"bulk {act.pk}", verb=act.verb, query=act.query)


# -- reading -----------------------------------------------------------------------------------------------------------


def acts_seen_by(user: Person | None, username: str) -> QuerySet[BulkAct]:
    """Whoever sees some agents alone sees their own acts alone: the others may tell of runs that are not theirs."""
    acts = BulkAct.objects.select_related("release").order_by("-id")
    return acts if agents_of(user) is None else acts.filter(actor=username)


def find_bulk(bulk_id: int, user: Person | None, username: str = "") -> BulkAct:
    act = acts_seen_by(user, username).filter(pk=bulk_id).first()
    if act is None:
        raise BulkNotFound(f"({bulk_id})")
    return act


OUTCOMES = ("done", "skipped", "failed")


@dataclass(frozen=True, slots=True)
class Progress:
    left: int
    done: int
    skipped: int
    failed: int

    @property
    def total(self) -> int:
        return self.left + self.done + self.skipped + self.failed


def progress_of(act: BulkAct) -> Progress:
    found = dict(act.items.order_by().values_list("outcome").annotate(Count("run_id")))
    return Progress(found.get(None, 0), *(found.get(outcome, 0) for outcome in OUTCOMES))


FORK_NEEDED = "Fork needed"  # begins what is said of an item that was judged so


@dataclass(frozen=True, slots=True)
class Verdicts:
    """What an act has judged so far. `unjudged`: those of which no worker could say anything."""

    compatible: int
    fork_needed: int
    refused: int
    unjudged: int
    left: int


def verdicts_of(act: BulkAct) -> Verdicts:
    forks = Q(outcome="skipped", said__startswith=FORK_NEEDED)
    found = act.items.aggregate(
        compatible=Count("run_id", Q(outcome="done")), fork_needed=Count("run_id", forks),
        refused=Count("run_id", Q(outcome="skipped") & ~forks), unjudged=Count("run_id", Q(outcome="failed")),
        left=Count("run_id", Q(outcome=None)),
    )  # fmt: skip
    return Verdicts(**found)


def verdict_word(item: BulkItem) -> str:
    """What an act that judges has found of a run, in a word or two."""
    match item.outcome:
        case "done":
            return "compatible"
        case "skipped":
            return "fork needed" if item.said.startswith(FORK_NEEDED) else "refused"
        case "failed":
            return "not judged"
    return "to do"


def items_of(
    act: BulkAct, outcome: str | None = None, after: UUID | None = None, limit: int = 100
) -> tuple[list[BulkItem], UUID | None]:
    """By run, with the run; `outcome` may be `left`, for those whose turn has not come."""
    items = act.items.select_related("run").order_by("run_id")
    if outcome is not None:
        items = items.filter(outcome=None if outcome == "left" else outcome)
    if after is not None:
        items = items.filter(run_id__gt=after)
    found = list(items[: limit + 1])
    return found[:limit], found[limit - 1].run_id if len(found) > limit else None
