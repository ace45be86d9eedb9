"""What a fork would copy, and what of its relatives' effects it could repeat: told before it is ordered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection

from journal.payloads import payload_store
from recovery.fork_source import Source, refusals_of, release_of
from runs.models import ENDED, Release, Run, WorkerSession
from runs.relatives import InDatabase, Member, Relatives, is_erased
from runs.slots import Slot
from runs.state import RunState

NOBODY = UUID(int=0)  # stands for the fork, which is not there yet
NOT_DONE = ("failed", "denied", "expired", "cancelled")
WORDS = {"awaiting_approval": "Waiting approval", "pending": "About to be sent", "cancelled": "Withdrawn"}


@dataclass(frozen=True, slots=True)
class LaterEffect:
    """A call, or a child that was started, behind the fork's beginning. `outcome`: how it was settled, else its state.

    `effect`: its class; "child" of a child. `args`: what was sent; a child's input.
    """

    run: UUID
    seq: int
    step: int
    tool: str
    effect: str
    key: str
    args: Any
    outcome: str
    at: datetime
    could_repeat: bool
    says: str

    @property
    def stands(self) -> str:
        """Its outcome in words."""
        return WORDS.get(self.outcome) or self.outcome.replace("_", " ").capitalize()


@dataclass(frozen=True, slots=True)
class Preview:
    """`at`: where it would be forked; `why_not`: why it cannot be, empty if it can. `before` and `after`: the nearest
    entries at which it can. `refusals`: what else would refuse it. `lifts`: what stopped the source there and will not
    stop the fork. `family`: the source and its relatives that are still open."""

    run: Run
    at: int
    last_seq: int
    why_not: str
    before: int | None
    after: int | None
    points: Sequence[int]
    release: Release
    served: bool
    copied: int
    steps: int
    lifts: Sequence[str]
    refusals: Sequence[str]
    effects: Sequence[LaterEffect]
    family: Sequence[Run]

    @property
    def allowed(self) -> bool:
        return not self.why_not and not self.refusals

    @property
    def repeatable(self) -> list[LaterEffect]:
        return [effect for effect in self.effects if effect.could_repeat]

    @property
    def by_class(self) -> Mapping[str, int]:
        """How many could repeat, by effect class."""
        return Counter(effect.effect for effect in self.repeatable)


def preview(run: Run, at: int | None = None, release: str | None = None) -> Preview:
    """`at` None: the last entry at which it can be forked. Raises StatelessRun, OtherAgent, UnknownRelease."""
    source = Source(run)
    points = source.points
    cut = at if at is not None else (points.before(points.last_seq) or 0)
    allowed = points.allows(cut)
    state = source.state_at(cut) if allowed else RunState(run.id)
    target = release_of(run, state, release)
    family, effects = later_effects(run, cut) if allowed else ([], [])
    open_ones = Run.objects.filter(id__in=[member.id for member in family]).exclude(status__in=ENDED).order_by("id")
    return Preview(
        run, cut, points.last_seq, "" if allowed else points.why_not(cut), points.before(cut), points.after(cut),
        points.seqs, target, is_served(target), cut if allowed else 0, len(state.slots), lifts(state),
        refusals_of(run, state, target) if allowed else [], effects, list(open_ones),
    )  # fmt: skip


def later_effects(run: Run, at: int) -> tuple[list[Member], list[LaterEffect]]:
    """Of the source and of all its relatives, in the order in which they were begun."""
    reader = WithFork(InDatabase(None), run, at)
    relatives = Relatives(NOBODY, run.lineage or run.id, reader, payload_store())
    relatives.look()
    found = [effect_of(member, slot) for member, slot in relatives.slots() if slot.kind in ("call", "child")]
    return list(relatives.members.values()), sorted(found, key=lambda effect: (effect.at, effect.seq))


@dataclass(frozen=True, slots=True)
class WithFork:
    """The family as it would be."""

    there: InDatabase
    run: Run
    at: int

    def family(self, root: UUID) -> list[Member]:
        known = self.there.family(root) or [self.alone()]
        return [*known, Member(NOBODY, self.run.id, self.at, False, self.at)]

    def alone(self) -> Member:
        """A run that nobody has forked."""
        with connection.cursor() as cursor:
            cursor.execute("SELECT last_seq FROM journal_head WHERE run_id = %s", [self.run.id])
            (last,) = cursor.fetchone()
        return Member(self.run.id, None, None, self.run.status in ENDED, last)

    def read_behind(self, run_id: UUID, after: int) -> Sequence[Any]:
        return self.there.read_behind(run_id, after)


def effect_of(member: Member, slot: Slot) -> LaterEffect:
    child = slot.kind == "child"
    outcome = "erased" if is_erased(slot) else slot.outcome or told_open(slot, member)
    effect = LaterEffect(
        member.id, slot.seq, slot.step, slot.tool, "child" if child else slot.effect, slot.key,
        slot.body.get("input") if child else slot.args, outcome, slot.at, False, "",
    )  # fmt: skip
    says = sentence(effect)
    return replace(effect, could_repeat=says[0], says=says[1])


def told_open(slot: Slot, member: Member) -> str:
    """How an unsettled one stands; of a run that has ended, what was never sent never will be."""
    if slot.kind == "child":
        return "running" if slot.child else "failed"
    return "cancelled" if member.ended and not slot.in_doubt else slot.state


def sentence(effect: LaterEffect) -> tuple[bool, str]:
    """Whether the fork could repeat it, and how."""
    if effect.outcome == "erased":
        return True, "It was erased, so nothing can be compared with it: the fork asks before each effect."
    if effect.effect == "read":
        return False, "It changes nothing outside."
    if effect.outcome in NOT_DONE and effect.effect != "child":
        return False, "It did not happen."
    if effect.effect == "child":
        return True, "The fork would start another such run. Where it comes to the same, it is held first."
    if effect.outcome == "succeeded":
        again = "The fork has another key, so it would be done a second time."
    elif effect.outcome == "in_doubt":
        again = "Nobody knows yet whether it happened. The fork has another key, so it might be done twice."
    else:
        again = "It is still to be done there. The fork has another key, so it would be done by both."
    return True, f"{again} Where the fork comes to the same call, it asks first."


def lifts(state: RunState) -> list[str]:
    stops = {"hold": state.held, "divergence": state.diverged, "brake": state.braked, "quarantine": state.quarantined}
    return [f"the {name} of entry {stop.seq}: {stop.reason}" for name, stop in stops.items() if stop is not None]


def is_served(release: Release) -> bool:
    return WorkerSession.objects.filter(ended_at=None, draining_at=None, serves__contains=[release.id]).exists()
