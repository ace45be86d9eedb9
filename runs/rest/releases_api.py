"""The API of releases: what they hold, what they are to new runs, what still needs them."""

from __future__ import annotations

from typing import Annotated

from django.db.models import Q
from django.http import HttpRequest
from ninja import Query, Router
from pydantic import Field

from runs.access import ROLL_BACK, STAGE, VIEW, PermissionMissing, Person, seen_by, sees
from runs.errors import AgentNotFound, CursorUnknown, ReleaseNotFound
from runs.fleet import needs, rates
from runs.guards import actor_of, may
from runs.models import Release
from runs.releases_compared import diff
from runs.rest.releases import (
    DiffOut,
    NeedsOut,
    RatesOut,
    ReleaseList,
    ReleaseOut,
    diff_out,
    needs_out,
    rates_out,
    releases_out,
)
from runs.rest.schemas import Given, Name, Reason, ReasonBody, Sent, Time, problems
from runs.stages import permission_for, promote_release, retire_release, roll_back, set_canary
from runs.staging import find_release

router = Router(tags=["releases"])
Ref = Annotated[str, Field(description="The release's id, or agent@version.")]


class ReleasePaging(Given):
    agent: Name | None = None
    cursor: Name | None = None
    limit: int = Field(100, ge=1, le=1000)


class StageBody(Sent):
    reason: Reason
    anyway: bool = Field(False, description="Though no live worker serves it: its new runs wait for one.")


class ShareBody(StageBody):
    share: int = Field(ge=0, le=100, description="Of 100 new runs; 0: a candidate again.")


class Since(Given):
    since: Time | None = Field(None, description="Default: when its stage or its share last changed.")


@router.get("/releases", auth=may(VIEW), response={200: ReleaseList, **problems()})
def list_releases(request: HttpRequest, paging: Query[ReleasePaging]) -> ReleaseList:
    """Every release that workers have announced, with its whole content; by agent, the newest first."""
    rows = seen_by(request.user, Release.objects.order_by("agent", "-created_at", "id"))
    if paging.agent is not None:
        rows = rows.filter(agent=paging.agent)
    if paging.cursor:
        last = Release.objects.filter(id=paging.cursor).first()
        if last is None:
            raise CursorUnknown(paging.cursor)
        later = Q(created_at__lt=last.created_at) | Q(created_at=last.created_at, id__gt=last.id)
        rows = rows.filter(Q(agent__gt=last.agent) | Q(agent=last.agent) & later)
    found = list(rows[: paging.limit + 1])
    more = found[paging.limit - 1].id if len(found) > paging.limit else None
    return ReleaseList(items=releases_out(found[: paging.limit], paging.agent), next_cursor=more)


@router.get("/releases/{release}", auth=may(VIEW), response={200: ReleaseOut, **problems(404)})
def one_release(request: HttpRequest, release: Ref) -> ReleaseOut:
    """One release."""
    return told(release_seen(release, request.user))


@router.get("/releases/{release}/needs", auth=may(VIEW), response={200: NeedsOut, **problems(404)})
def what_needs(request: HttpRequest, release: Ref) -> NeedsOut:
    """May it retire? What still needs it."""
    found = release_seen(release, request.user)
    return needs_out(found, needs(found))


@router.get("/releases/{release}/rates", auth=may(VIEW), response={200: RatesOut, **problems(404)})
def how_it_fares(request: HttpRequest, release: Ref, given: Query[Since]) -> RatesOut:
    """How its runs fare: failed, in doubt, denied, asked, tokens. Ask for canary and current since the same time."""
    found = release_seen(release, request.user)
    return rates_out(found, rates(found, given.since or found.staged_at))


@router.get("/releases/{release}/diff", auth=may(VIEW), response={200: DiffOut, **problems(404)}, by_alias=True)
def differences(request: HttpRequest, release: Ref, to: Name) -> DiffOut:
    """What is other in the release `to`: field by field, texts by line, tools by parameter."""
    before, after = release_seen(release, request.user), release_seen(to, request.user)
    return diff_out(before, after, diff(before.contract, after.contract))


@router.post("/releases/{release}/promote", auth=may(STAGE), response={200: ReleaseOut, **problems(400, 404, 409, 413)})
def promote(request: HttpRequest, release: Ref, given: StageBody) -> ReleaseOut:
    """It takes the new runs from the very next one on; the release that did is retiring."""
    found = release_seen(release, request.user)
    actor = actor_of(request)
    return told(promote_release(release_id=found.id, reason=given.reason, actor=actor, anyway=given.anyway))


@router.post(
    "/releases/{release}/canary", auth=may(ROLL_BACK), response={200: ReleaseOut, **problems(400, 404, 409, 413)}
)
def canary(request: HttpRequest, release: Ref, given: ShareBody) -> ReleaseOut:
    """It takes `share` of 100 new runs. To give it some one has to be admin; to end it (0) an operator is enough."""
    if not request.user.has_perm(needed := permission_for(given.share)):
        raise PermissionMissing(actor_of(request), needed)
    found, actor = release_seen(release, request.user), actor_of(request)
    return told(
        set_canary(release_id=found.id, share=given.share, reason=given.reason, actor=actor, anyway=given.anyway)
    )


@router.post("/releases/{release}/retire", auth=may(STAGE), response={200: ReleaseOut, **problems(400, 404, 409, 413)})
def retire(request: HttpRequest, release: Ref, given: ReasonBody) -> ReleaseOut:
    """Nothing may be started under it any more. 409 with the list while something needs it."""
    found = release_seen(release, request.user)
    return told(retire_release(release_id=found.id, reason=given.reason, actor=actor_of(request)))


@router.post("/agents/{name}/rollback", auth=may(ROLL_BACK), response={200: ReleaseOut, **problems(400, 404, 409, 413)})
def rollback(request: HttpRequest, name: str, given: StageBody) -> ReleaseOut:
    """The release that was current before takes the new runs again; answers with that one."""
    if not sees(request.user, name):
        raise AgentNotFound(f"({name[:60]})")
    return told(roll_back(agent=name, reason=given.reason, actor=actor_of(request), anyway=given.anyway))


def release_seen(ref: str, user: Person) -> Release:
    """Raises ReleaseNotFound, also for one outside of the user's scope."""
    found = find_release(ref)
    if not sees(user, found.agent):
        raise ReleaseNotFound(f"({ref[:100]})")
    return found


def told(found: Release) -> ReleaseOut:
    return releases_out([found], found.agent)[0]
