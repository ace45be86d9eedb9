"""What is forked: its journal as it was read, where it may be cut, and what refuses a fork of it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from django.db import connection

from journal.entries import Entry
from journal.read import read_entries
from recovery.errors import NotAFrontier, RecoveryError, ReleaseRetired
from recovery.fork_points import ForkPoints, fork_points
from recovery.pins import target_of
from runs.errors import BusinessIdTaken, RunsError, StatelessRun
from runs.models import Release, Run, Stage
from runs.state import RunState, fold
from runs.trees import business_id_of


@dataclass(frozen=True)
class Source:
    """Raises StatelessRun."""

    run: Run

    def __post_init__(self) -> None:
        if self.run.input is not None:
            raise StatelessRun("Start it again instead.")

    @cached_property
    def entries(self) -> list[Entry]:
        return read_entries(connection, self.run.id)

    @cached_property
    def points(self) -> ForkPoints:
        return fork_points(self.run.id, self.entries)

    def state_at(self, at: int) -> RunState:
        """Raises NotAFrontier."""
        points = self.points
        if not points.allows(at):
            raise NotAFrontier(at, points.why_not(at), points.before(at), points.after(at))
        return fold(self.run.id, self.entries[:at])


def release_of(run: Run, state: RunState, named: str | None) -> Release:
    """What the fork goes on under: the release that its copied entries end under, or the one that is named.

    Raises OtherAgent, UnknownRelease.
    """
    return Release.objects.get(id=state.release_id or run.release_id) if named is None else target_of(run, named)


def refuse(run: Run, state: RunState, release: Release) -> None:
    """Raises ReleaseRetired, BusinessIdTaken."""
    if release.stage == Stage.RETIRED:
        raise ReleaseRetired(f"({release})")
    business_id = business_id_of(release.content.get("unique"), state.labels)
    if business_id is None:
        return
    holder = Run.objects.filter(agent=run.agent, business_id=business_id, ended_at__isnull=True).first()
    if holder is not None:
        raise BusinessIdTaken(business_id, str(holder.id))


def refusals_of(run: Run, state: RunState, release: Release) -> list[str]:
    """In words, what `refuse` raises."""
    try:
        refuse(run, state, release)
    except (RecoveryError, RunsError) as error:
        return [str(error)]
    return []
