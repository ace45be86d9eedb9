"""Moving a run to another release: a page and a dialog. The verdict comes first; only then may it be confirmed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from django import forms
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from recovery.errors import RecoveryError
from recovery.models import Purpose, Replay
from recovery.pages.refusing import on_refusal
from recovery.pins import COMPATIBLE, check_movable, judgement_of, last_seq, only_diverged, reasons_of, repin_run
from recovery.pins import targets_of as releases_for
from recovery.replays import order, wait_for
from runs.access import REPIN
from runs.errors import RunEnded, RunsError
from runs.models import ENDED, Release, Run, Stage
from runs.pages.dialogs import dialog_or_page, done
from runs.pages.forms import REASON
from runs.pages.start_page import serving
from runs.pages.way_back import way_back
from runs.queries import find_run, state_of
from runs.rest.answers import is_stateless
from runs.short_ids import short_id
from runs.signed_in import signed_in

GET_OR_POST = ["GET", "POST"]
SOON = 1.0  # seconds that an order waits for its end before the dialog does
WORDS = {"compatible": ("ok", "Compatible"), "fork needed": ("warn", "Fork needed"), "refused": ("failed", "Refused")}


class PinForm(forms.Form):
    reason = forms.CharField(max_length=2000, error_messages=REASON, widget=forms.Textarea)
    judged = forms.IntegerField(min_value=1, max_value=2**63 - 1, widget=forms.HiddenInput)


@dataclass(frozen=True, slots=True)
class Choice:
    """A release that the run may go to."""

    release: Release
    workers: int
    chosen: bool

    @property
    def told(self) -> str:
        return f"{self.release.get_stage_display().lower()}, {self.workers} worker{'s' if self.workers != 1 else ''}"


@dataclass(frozen=True, slots=True)
class PinPage:
    """`why_not`: what refuses the move whatever is judged. `judgement`: the newest for this release, made or ordered.

    `current`: whether the journal still ends where it was judged.
    """

    run: Run
    choices: list[Choice]
    target: Release | None
    why_not: str
    judgement: Replay | None
    current: bool
    lifts: bool

    @property
    def state(self) -> str:
        """unjudged, judging, judged, or failed."""
        if self.judgement is None or (self.judgement.ended_at is not None and not self.current):
            return "unjudged"
        if self.judgement.ended_at is None:
            return "judging"
        return "failed" if self.judgement.error else "judged"

    @property
    def compatible(self) -> bool:
        return self.state == "judged" and self.judgement is not None and self.judgement.verdict == COMPATIBLE

    @property
    def verdict(self) -> tuple[str, str]:
        """Its hue and its word."""
        return WORDS.get(self.judgement.verdict if self.judgement else "", ("off", "Not judged"))

    @property
    def reasons(self) -> list[dict[str, Any]]:
        """With the hue and the word of what each makes of the move."""
        found = reasons_of(self.judgement) if self.judgement else []
        told = {"compatible": ("ok", "Only told"), **{v: WORDS[v] for v in ("fork needed", "refused")}}
        return [each | {"look": told[each["verdict"]]} for each in found]


def page_of(request: HttpRequest, ref: str) -> PinPage:
    run = find_run(ref, request.user)
    releases, workers = releases_for(run), serving()
    named = request.POST.get("release") or request.GET.get("release") or ""
    target = next((each for each in releases if named in (each.id, each.version, str(each))), None)
    if not named:
        target = next((each for each in releases if each.stage == Stage.CURRENT), None) or next(iter(releases), None)
    choices = [Choice(each, workers.get(each.id, 0), each == target) for each in releases]
    why_not = unmovable(run, target, bool(releases), named)
    judgement = newest(run, target) if target is not None and not why_not else None
    current = judgement is not None and judgement.as_of_seq == last_seq(run.id)
    lifts = target is not None and not is_stateless(run) and only_diverged(state_of(run.id))
    return PinPage(run, choices, target, why_not, judgement, current, lifts)


def unmovable(run: Run, target: Release | None, any_served: bool, named: str) -> str:
    """In a sentence; empty: it may be judged."""
    if run.status in ENDED:
        return str(RunEnded(run.status, run.ended_at))
    if target is None and named:
        return "No live worker serves that release."
    if target is None and not any_served:
        return f"No live worker serves another release of {run.agent}. Start one, and judge the move then."
    if target is None:
        return "Choose a release."
    try:
        check_movable(run, target)
    except (RunsError, RecoveryError) as no:
        return str(no)
    return ""


def newest(run: Run, target: Release) -> Replay | None:
    """What still holds; else what is under way, or the last."""
    made = Replay.objects.filter(run=run, release=target, purpose=Purpose.PIN).order_by("-id")
    return judgement_of(run, target, None) or made.first()


@require_http_methods(GET_OR_POST)
@signed_in(REPIN)
def pin(request: HttpRequest, ref: str) -> HttpResponseBase:
    if request.POST.get("do") == "judge":
        return judged(request, ref)
    page = page_of(request, ref)
    form = PinForm(request.POST or None)
    on_refusal(request, partial(refused, request, ref, form))
    if request.method == "POST" and form.is_valid() and page.target is not None:
        moved = repin_run(
            run_id=page.run.id, release=page.target.id, reason=form.cleaned_data["reason"],
            judged=form.cleaned_data["judged"], actor=request.user.get_username(),
        )  # fmt: skip
        told = f"{short_id(moved.id)} goes on under {moved.release}. PIN was written to its journal with your name."
        return done(request, back_to(request, moved), told)
    return shown(request, page, form, 422 if request.method == "POST" else 200)


def judged(request: HttpRequest, ref: str) -> HttpResponseBase:
    """A worker of the release is asked, unless what one has said still holds."""
    page = page_of(request, ref)
    if page.target is not None and not page.why_not and page.state in ("unjudged", "failed"):
        on_refusal(request, partial(refused, request, ref, PinForm()))
        wait_for(order(page.run, page.target, Purpose.PIN, actor=request.user.get_username()), SOON)
        page = page_of(request, ref)
    return shown(request, page, PinForm(), 200)


def refused(request: HttpRequest, ref: str, form: PinForm, error: Exception, status: int) -> HttpResponse:
    """What is so now, and why nothing was written."""
    return shown(request, page_of(request, ref), form, status, str(error))


def shown(request: HttpRequest, page: PinPage, form: PinForm, status: int, no: str = "") -> HttpResponse:
    context = {"section": "runs", "run": page.run, "short": short_id(page.run.id), "page": page, "form": form, "no": no,
               "back": back_to(request, page.run)}  # fmt: skip
    return dialog_or_page(request, "recovery/pin.html", context, status)


def back_to(request: HttpRequest, run: Run) -> str:
    return way_back(request, reverse("runs:run", args=[short_id(run.id)]))
