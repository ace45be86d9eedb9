"""The page of a dry replay: what would be decided otherwise under a release, beside what was decided."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any
from uuid import UUID

from django import forms
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_GET, require_http_methods

from recovery.models import Purpose, Replay
from recovery.pages.refusing import on_refusal
from recovery.pages.replay_page import CHANGES, ReplayPage
from recovery.pages.targets import Target, targets_of
from recovery.replays import order, wait_for
from runs.access import CONTROL, VIEW
from runs.errors import StatelessRun
from runs.pages.asked import whole
from runs.pages.live import event, live_answer
from runs.queries import find_run
from runs.rest.answers import is_stateless
from runs.rest.wire import strict_json
from runs.short_ids import short_id
from runs.signed_in import signed_in

GET_OR_POST = ["GET", "POST"]
SOON = 1.5  # seconds that an order waits for its end before the page does
LOOKS_AGAIN = 1.0
LIST = "div#compared"  # as htmx 4 names it in HX-Target


class ReplayForm(forms.Form):
    release = forms.ChoiceField(label="Under", widget=forms.Select)
    asks_model = forms.BooleanField(label="Ask the model again, to compare", required=False)

    def __init__(self, targets: Sequence[Target], data: Any = None, **given: Any) -> None:
        super().__init__(data, **given)
        self.fields["release"].choices = [(one.release.id, one.label) for one in targets]  # type: ignore[attr-defined]


def page_of(request: HttpRequest, ref: str, replay_id: int | None = None) -> ReplayPage:
    run = find_run(ref, request.user)
    if is_stateless(run):
        raise StatelessRun
    replays = Replay.objects.filter(run=run).select_related("release").order_by("-id")
    by_people = replays.filter(purpose=Purpose.REPLAY)
    newest = by_people.first()
    targets, target = targets_of(run, request.GET.get("release") or (newest.release_id if newest is not None else ""))
    found = by_people.filter(release=target.release) if replay_id is None else replays.filter(pk=replay_id)
    seq, what, show = whole(request.GET.get("seq")), request.GET.get("what", ""), request.GET.get("show")
    return ReplayPage(run, target, targets, found.first(), seq, what, show == CHANGES)


def context_of(page: ReplayPage, form: ReplayForm) -> dict[str, Any]:
    return {"section": "runs", "page": page, "run": page.run, "short": short_id(page.run.id), "form": form}


def form_of(page: ReplayPage, data: Any = None) -> ReplayForm:
    return ReplayForm(page.targets, data, initial={"release": page.target.release.id})


@require_http_methods(GET_OR_POST)
@signed_in(VIEW)
def replay(request: HttpRequest, ref: str) -> HttpResponseBase:
    if request.method == "POST":
        return ordered(request, ref)
    page = page_of(request, ref)
    in_part = request.headers.get("HX-Target") == LIST
    template = "recovery/_replay_compared.html" if in_part else "recovery/replay.html"
    answer = render(request, template, context_of(page, form_of(page)))
    answer.headers["Vary"] = "HX-Request, HX-Target, Cookie"
    return answer


@signed_in(CONTROL)
def ordered(request: HttpRequest, ref: str) -> HttpResponseBase:
    """A new one; the page that it leads to waits for it."""
    page = page_of(request, ref)
    form = form_of(page, request.POST)
    on_refusal(request, partial(refused, request, page, form))
    if not form.is_valid():
        return render(request, "recovery/replay.html", context_of(page, form), status=422)
    release = page.release_named(form.cleaned_data["release"])
    actor, asks = request.user.get_username(), form.cleaned_data["asks_model"]
    wait_for(order(page.run, release, Purpose.REPLAY, actor=actor, asks_model=asks), SOON)
    return redirect(f"{reverse('recovery:replay', args=[short_id(page.run.id)])}?{urlencode({'release': release.id})}")


def refused(request: HttpRequest, page: ReplayPage, form: ReplayForm, error: Exception, status: int) -> HttpResponse:
    return render(request, "recovery/replay.html", context_of(page, form) | {"no": error}, status=status)


@require_GET
@signed_in(VIEW)
def report(request: HttpRequest, ref: str, replay_id: int) -> HttpResponseBase:
    """The result as it is kept, for a file."""
    page = page_of(request, ref, replay_id)
    if page.replay is None or page.replay.result is None:
        raise Http404("There is no such replay, or it has no result.")
    answer = HttpResponse(strict_json(page.replay.result), content_type="application/json")
    name = f"{short_id(page.run.id)}-replay-{page.replay.pk}.json"
    answer["Content-Disposition"] = f'attachment; filename="{name}"'
    return answer


@require_GET
async def live_replay(request: HttpRequest, run_id: UUID) -> HttpResponseBase:
    return await live_answer(
        request, lambda: ReplayPicture(request, run_id), run_id, pause=LOOKS_AGAIN, idle=LOOKS_AGAIN
    )


class ReplayPicture:
    """While it waits: how far it is. Once it has ended: all of the page."""

    def __init__(self, request: HttpRequest, run_id: UUID) -> None:
        self.request, self.run_id = request, run_id
        self.told: tuple[Any, ...] = ()

    def draw(self) -> str:
        page = page_of(self.request, str(self.run_id))
        made = page.replay
        tells = (made.pk, made.taken_by, made.ended_at) if made is not None else ()
        if tells == self.told:
            return ""
        self.told = tells
        return event(
            {"#replay": render_to_string("recovery/_replay.html", context_of(page, form_of(page)), self.request)}
        )
