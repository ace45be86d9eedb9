"""Dialogs that change what a release is to new runs: promote, canary, end of a canary, rollback, retire."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from django import forms
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from runs.access import ROLL_BACK, STAGE, Person, sees
from runs.errors import ReleaseNotFound, RunsError
from runs.fleet import Need, needs
from runs.models import Release, Stage
from runs.pages.dialogs import dialog_or_page, done
from runs.pages.forms import ReasonForm
from runs.pages.way_back import way_back
from runs.signed_in import signed_in
from runs.stages import promote_release, retire_release, roll_back
from runs.stages import set_canary as share_with_canary
from runs.staging import current_of, find_release, is_served, releases_of

GET_OR_POST = ["GET", "POST"]


@dataclass(frozen=True, slots=True)
class Standing:
    """A release among those of its agent, as it is now."""

    release: Release
    current: Release | None
    canary: Release | None
    served: bool
    before_served: bool
    needs: Sequence[Need]

    @property
    def before(self) -> Release | None:
        """What a rollback of the current release returns to."""
        return self.current.replaced if self.current is not None else None

    @property
    def open_runs(self) -> int:
        return sum(need.count for need in self.needs)

    @property
    def seen(self) -> str:
        """What an act rests on: it is refused where this has changed since the page was drawn."""
        others = (one.id[:12] if one is not None else "" for one in (self.current, self.canary, self.before))
        return ":".join((self.release.stage, str(self.release.share), *others))


def standing_of(release: Release) -> Standing:
    current = current_of(release.agent)
    before = current.replaced if current is not None else None
    canary = releases_of(release.agent).filter(stage=Stage.CANARY).first()
    before_served = before is not None and is_served(before.id)
    return Standing(release, current, canary, is_served(release.id), before_served, needs(release))


def release_seen(named: str, user: Person) -> Release:
    """Raises ReleaseNotFound, also for one of an agent outside of the user's scope."""
    release = find_release(named)
    if not sees(user, release.agent):
        raise ReleaseNotFound(f"({named[:100]})")
    return release


# -- the acts ----------------------------------------------------------------------------------------------------------


class StageForm(ReasonForm):
    """`anyway` is asked for where no live worker serves the release."""

    anyway = forms.BooleanField(
        required=False, label="Do it all the same: what is started under it waits until a worker serves it"
    )
    field_order: Sequence[str] = ("anyway", "reason")


class ShareForm(StageForm):
    share = forms.IntegerField(
        min_value=1, max_value=100, label="Share of new runs, in percent",
        help_text="1 to 100. The rest goes to the current release.",
        error_messages={"required": "Say how many of 100 new runs it takes."},
        widget=forms.TextInput(attrs={"inputmode": "numeric"}),
    )  # fmt: skip
    field_order = ("share", "anyway", "reason")


@dataclass(frozen=True, slots=True)
class Act:
    """`says`: what it does, in a line. `why_not` is the sentence for whoever wants it where it does not apply, empty
    where it does. `serves`: whether a live worker serves what would take new runs."""

    verb: str
    button: str
    says: str
    look: str
    permission: str
    why_not: Callable[[Standing], str]
    carry_out: Callable[[Standing, dict[str, Any], str], Release]
    done: str
    serves: Callable[[Standing], bool] = lambda standing: True
    form: type[ReasonForm] = ReasonForm


def not_promotable(standing: Standing) -> str:
    return "It is current already: new runs start under it." if standing.release.stage == Stage.CURRENT else ""


def no_canary(standing: Standing) -> str:
    release, other = standing.release, standing.canary
    if release.stage == Stage.CURRENT:
        return "It is current: it takes every new run that no canary takes."
    if standing.current is None:
        return "There is no current release beside it: promote one first."
    if other is not None and other.id != release.id:
        return f"{other} is the canary, with {other.share}%: an agent has one at a time."
    return ""


def not_ending(standing: Standing) -> str:
    return "" if standing.release.stage == Stage.CANARY else "It is no canary: it takes no share of new runs."


def not_back(standing: Standing) -> str:
    if standing.release.stage != Stage.CURRENT:
        return "It is not current: there is nothing to take back."
    return "" if standing.before is not None else "No release was current before it."


def not_retirable(standing: Standing) -> str:
    if standing.release.stage == Stage.RETIRED:
        return "It is retired already."
    return f"It is still needed: {'; '.join(need.says for need in standing.needs)}." if standing.needs else ""


def promoting(standing: Standing, given: dict[str, Any], actor: str) -> Release:
    return promote_release(release_id=standing.release.id, actor=actor, **given)


def sharing(standing: Standing, given: dict[str, Any], actor: str) -> Release:
    return share_with_canary(release_id=standing.release.id, actor=actor, **given)


def ending(standing: Standing, given: dict[str, Any], actor: str) -> Release:
    return share_with_canary(release_id=standing.release.id, share=0, actor=actor, **given)


def taking_back(standing: Standing, given: dict[str, Any], actor: str) -> Release:
    return roll_back(agent=standing.release.agent, actor=actor, **given)


def retiring(standing: Standing, given: dict[str, Any], actor: str) -> Release:
    return retire_release(release_id=standing.release.id, actor=actor, **given)


ACTS = {
    act.verb: act
    for act in (
        Act(
            "promote", "Promote", "All new runs start under it.", "primary", STAGE,
            not_promotable, promoting, "New runs start under {}.", lambda standing: standing.served, StageForm,
        ),
        Act(
            "canary", "Set a share", "Some of 100 new runs start under it.", "", STAGE,
            no_canary, sharing, "{} takes {share} of 100 new runs.", lambda standing: standing.served, ShareForm,
        ),
        Act(
            "end-canary", "End the canary", "No new run starts under it any more.", "danger", ROLL_BACK,
            not_ending, ending, "{} takes no new run any more.",
        ),
        Act(
            "rollback", "Roll back", "New runs start under the release before again.", "danger", ROLL_BACK,
            not_back, taking_back, "New runs start under {} again.", lambda standing: standing.before_served, StageForm,
        ),
        Act(
            "retire", "Retire", "Nothing can be started under it any more.", "", STAGE,
            not_retirable, retiring, "{} is retired: nothing can be started under it.",
        ),
    )
}  # fmt: skip


ROUTES = {
    "promote": "promote_release", "canary": "canary_release", "end-canary": "end_canary",
    "rollback": "roll_back_release", "retire": "retire_release",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Offer:
    """An act beside its release: `why_not` says what stands against it, or that the role does not allow it."""

    act: Act
    link: str
    why_not: str


def offers(standing: Standing, user: Person) -> list[Offer]:
    """Those that concern a release in this stage, in the order of what is likely."""
    wanted = {
        Stage.CANDIDATE: ("canary", "promote", "retire"),
        Stage.CANARY: ("promote", "canary", "end-canary"),
        Stage.CURRENT: ("rollback", "retire"),
        Stage.RETIRING: ("retire", "promote", "canary"),
        Stage.RETIRED: ("promote", "canary"),
    }[Stage(standing.release.stage)]
    found = []
    for act in (ACTS[verb] for verb in wanted):
        may = user.has_perm(act.permission)
        link = reverse(f"runs:{ROUTES[act.verb]}", args=[standing.release.id])
        found.append(Offer(act, link, act.why_not(standing) if may else "Your role does not allow this."))
    return found


# -- views -------------------------------------------------------------------------------------------------------------


@require_http_methods(GET_OR_POST)
@signed_in(STAGE)
def promote(request: HttpRequest, named: str) -> HttpResponseBase:
    return staged(request, named, ACTS["promote"])


@require_http_methods(GET_OR_POST)
@signed_in(STAGE)
def canary(request: HttpRequest, named: str) -> HttpResponseBase:
    return staged(request, named, ACTS["canary"])


@require_http_methods(GET_OR_POST)
@signed_in(ROLL_BACK)
def end_canary(request: HttpRequest, named: str) -> HttpResponseBase:
    return staged(request, named, ACTS["end-canary"])


@require_http_methods(GET_OR_POST)
@signed_in(ROLL_BACK)
def rollback(request: HttpRequest, named: str) -> HttpResponseBase:
    return staged(request, named, ACTS["rollback"])


@require_http_methods(GET_OR_POST)
@signed_in(STAGE)
def retire(request: HttpRequest, named: str) -> HttpResponseBase:
    return staged(request, named, ACTS["retire"])


def staged(request: HttpRequest, named: str, act: Act) -> HttpResponseBase:
    """The dialog of an act, and what it leads to: what was on screen is compared with what is now."""
    standing = standing_of(release_seen(named, request.user))
    posted = request.method == "POST"
    form = act.form(request.POST if posted else None, initial=initial_of(request, standing))
    serves, why_not = act.serves(standing), act.why_not(standing)
    if serves:
        form.fields.pop("anyway", None)
    moved = posted and request.POST.get("seen", standing.seen) != standing.seen
    back = way_back(request, reverse("runs:releases"))
    status, refusal = 422 if posted else 200, ""
    if posted and (moved or why_not):
        status = 409
    elif posted and form.is_valid():
        try:
            release = act.carry_out(standing, form.cleaned_data, request.user.get_username())
            return done(request, back, act.done.format(release, **form.cleaned_data))
        except RunsError as refused:
            status, refusal = 409, str(refused)
    context = {
        "section": "releases", "act": act, "standing": standing, "release": standing.release, "form": form,
        "serves": serves, "why_not": why_not, "moved": moved, "refusal": refusal, "back": back, "seen": standing.seen,
    }  # fmt: skip
    return dialog_or_page(request, "runs/releases/act.html", context, status)


def initial_of(request: HttpRequest, standing: Standing) -> dict[str, Any]:
    asked = request.GET.get("share", "")
    return {"share": asked if asked.isdecimal() else standing.release.share or 10}
