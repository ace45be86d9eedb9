"""The releases that a journal may be decided again or go on under, and who serves them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from runs.errors import UnknownRelease
from runs.models import Release, Run
from runs.pages.start_page import serving

MOST_OFFERED = 20


@dataclass(frozen=True, slots=True)
class Target:
    """A release of the run's agent. `workers`: live ones that serve it. `own`: the run is pinned to it."""

    release: Release
    workers: int
    own: bool

    @property
    def label(self) -> str:
        served = f"served by {self.workers} worker{'s' if self.workers != 1 else ''}" if self.workers else "not served"
        return f"{self.release.version}, {'its own, ' if self.own else ''}{served}"


def targets_of(run: Run, named: str = "") -> tuple[Sequence[Target], Target]:
    """Those that live workers serve and the run's own, the newest first; and the one that is named: by its digest, its
    version or agent@version, without a name the run's own. Raises UnknownRelease."""
    workers = serving()
    known = list(Release.objects.filter(agent=run.agent).order_by("-created_at", "-id"))
    wanted = next((one for one in known if named in names_of(one)), None) if named else run.release
    if wanted is None:
        raise UnknownRelease(f"({named[:60]})")
    served = [one for one in known if workers.get(one.id)][:MOST_OFFERED]
    offered = [one for one in known if one in served or one.id in (run.release_id, wanted.id)]
    targets = [Target(one, workers.get(one.id, 0), one.id == run.release_id) for one in offered]
    return targets, next(one for one in targets if one.release.id == wanted.id)


def names_of(release: Release) -> tuple[str, str, str]:
    return release.id, release.version, f"{release.agent}@{release.version}"
