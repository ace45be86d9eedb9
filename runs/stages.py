"""What a release is to new runs: `current` takes them, `canary` its share of them, the others none unasked.

Every change is one transaction under one lock an agent, so that parallel ones come one after the other: there are never
two current releases, and an agent that has one is never seen without. The very next start anywhere sees it: the choice
is made in the database (`runs_release_for_v1`) and kept nowhere.
"""

from __future__ import annotations

from django.db import transaction

from runs.access import ROLL_BACK, STAGE
from runs.commands import given_reason
from runs.errors import (
    AgentNotFound,
    CanaryIsCurrent,
    CanaryTaken,
    NoCurrentRelease,
    NothingBefore,
    ReleaseNeeded,
    ReleaseUnserved,
    ShareInvalid,
)
from runs.fleet import needs
from runs.models import Release, Stage
from runs.staging import current_of, is_served, lock, locked, make_current, recorded, releases_of, stage_release
from runs.texts import is_writable, plain_text


def promote_release(*, release_id: str, reason: str, actor: str, anyway: bool = False) -> Release:
    """It takes the new runs from now on; the one that did is retiring. Nothing happens where it is current already.

    Raises ReasonMissing, ReleaseNotFound, ReleaseUnserved unless `anyway`.
    """
    said = given_reason(reason)
    with transaction.atomic():
        release = locked(release_id)
        if release.stage == Stage.CURRENT:
            return release
        check_served(release, anyway)
        return make_current(release, said, actor)


def set_canary(*, release_id: str, share: int, reason: str, actor: str, anyway: bool = False) -> Release:
    """It takes so many of 100 new runs, 1 to 100; 0 makes it a candidate again. What runs under it stays with it.

    Raises ReasonMissing, ShareInvalid, ReleaseNotFound, CanaryIsCurrent, NoCurrentRelease, CanaryTaken,
    ReleaseUnserved unless `anyway`.
    """
    said = given_reason(reason)
    if type(share) is not int or not 0 <= share <= 100:
        raise ShareInvalid
    with transaction.atomic():
        release = locked(release_id)
        if share == 0 and release.stage != Stage.CANARY:
            return release
        if share > 0:
            check_canary(release, anyway)
        before = {"stage": release.stage, "share": release.share}
        if (release.stage, release.share) == (Stage.CANARY, share):
            return release
        stage_release(release, Stage.CANARY if share else Stage.CANDIDATE, actor, share)
        recorded(release, "release.canary", said, actor, share=share, before=before)
        return release


def check_canary(release: Release, anyway: bool) -> None:
    if release.stage == Stage.CURRENT:
        raise CanaryIsCurrent(f"({release})")
    others = releases_of(release.agent)
    if current_of(release.agent) is None:
        raise NoCurrentRelease(release.agent, [str(other) for other in others])
    other = others.filter(stage=Stage.CANARY).exclude(id=release.id).first()
    if other is not None:
        raise CanaryTaken(str(other), other.share, other.staged_by, other.staged_at)
    check_served(release, anyway)


def roll_back(*, agent: str, reason: str, actor: str, anyway: bool = False) -> Release:
    """The release that was current before takes the new runs again; the one that is, is a candidate.

    One step, and not a second time: whoever asks at the same moment, or clicks twice, is refused. To go back further,
    promote the release. Raises ReasonMissing, AgentNotFound, NothingBefore, ReleaseUnserved unless `anyway`.
    """
    said = given_reason(reason)
    if not is_writable(agent) or not releases_of(agent).exists():
        raise AgentNotFound(f"({plain_text(agent)[:60]})")
    with transaction.atomic():
        lock(agent)
        current = current_of(agent)
        if current is None or current.replaced is None:
            raise NothingBefore(agent, current)
        before = current.replaced
        check_served(before, anyway)
        before.replaced = None
        stage_release(current, Stage.CANDIDATE, actor)
        stage_release(before, Stage.CURRENT, actor)
        recorded(before, "release.rollback", said, actor, rolled_back=str(current))
        return before


def retire_release(*, release_id: str, reason: str, actor: str) -> Release:
    """Nothing needs it any more, and nothing new may be started under it.

    Raises ReasonMissing, ReleaseNotFound, ReleaseNeeded with the list of what needs it.
    """
    said = given_reason(reason)
    with transaction.atomic():
        release = locked(release_id)
        if release.stage == Stage.RETIRED:
            return release
        Release.objects.select_for_update().only("id").get(id=release.id)  # starts under it that are not committed yet
        if found := needs(release):
            raise ReleaseNeeded(str(release), [need.says for need in found])
        before = release.stage
        stage_release(release, Stage.RETIRED, actor)
        recorded(release, "release.retire", said, actor, before=before)
        return release


def permission_for(share: int) -> str:
    """Who may set a canary's share: whoever may roll back may also end it."""
    return STAGE if share else ROLL_BACK


def check_served(release: Release, anyway: bool) -> None:
    if not anyway and not is_served(release.id):
        raise ReleaseUnserved(str(release), ", or say `anyway`: its new runs wait for one")
