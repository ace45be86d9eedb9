"""The page of a dry replay: what would be decided otherwise under a release, beside what was decided."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
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

from journal.entries import Entry
from recovery.fork_points import fork_points
from recovery.models import Purpose, Replay
from recovery.pages.refusing import on_refusal
from recovery.pages.replay_points import DIVERGES, TEXT, Point, cells_of, diff_of, points_of, strip_says
from recovery.pages.targets import Target, targets_of
from recovery.replays import order, wait_for
from runs.access import CONTROL, VIEW
from runs.errors import StatelessRun
from runs.models import Release, Run
from runs.pages.asked import whole
from runs.pages.facts import Pin, model_of, pin_of
from runs.pages.live import event, live_answer
from runs.pages.text_diff import TextDiff
from runs.queries import entries_of, find_run
from runs.rest.answers import is_stateless
from runs.rest.wire import strict_json
from runs.short_ids import short_id
from runs.signed_in import signed_in
from runs.state import RunState, fold

GET_OR_POST = ["GET", "POST"]
SOON = 1.5  # seconds that an order waits for its end before the page does
LOOKS_AGAIN = 1.0
CHANGES = "changes"
LIST = "div#compared"  # as htmx 4 names it in HX-Target


class ReplayForm(forms.Form):
    release = forms.ChoiceField(label="Under", widget=forms.Select)
    asks_model = forms.BooleanField(label="Ask the model again, to compare", required=False)

    def __init__(self, targets: Sequence[Target], data: Any = None, **given: Any) -> None:
        super().__init__(data, **given)
        self.fields["release"].choices = [(one.release.id, one.label) for one in targets]  # type: ignore[attr-defined]


@dataclass
class ReplayPage:
    """What the page shows; read when it is drawn."""

    run: Run
    target: Target
    targets: Sequence[Target]
    replay: Replay | None
    seq: int | None = None
    what: str = ""
    changes_only: bool = False

    @cached_property
    def entries(self) -> list[Entry]:
        return entries_of(self.run.id)

    @cached_property
    def state(self) -> RunState:
        return fold(self.run.id, self.entries)

    @property
    def result(self) -> dict[str, Any]:
        return (self.replay.result if self.replay is not None else None) or {}

    @property
    def waits(self) -> bool:
        return self.replay is not None and self.replay.ended_at is None

    @property
    def last(self) -> int:
        """The journal's end when it was decided again."""
        as_of = self.replay.as_of_seq if self.replay is not None else None
        return min(as_of or len(self.entries), len(self.entries))

    @property
    def newer(self) -> int:
        """Entries that came since."""
        return len(self.entries) - self.last

    @cached_property
    def points(self) -> list[Point]:
        return points_of(self.result, self.entries[: self.last])

    @property
    def in_effect(self) -> int:
        return sum(point.look == DIVERGES for point in self.points)

    @property
    def in_text(self) -> int:
        return sum(point.look == TEXT for point in self.points)

    @property
    def first(self) -> Point | None:
        """The first that differs in effect."""
        return next((point for point in self.points if point.look == DIVERGES), None)

    @cached_property
    def at(self) -> int | None:
        """Which of the points is shown: the one of the address, else the first in effect, else the first."""
        here = [point for point in self.points if point.seq == self.seq]
        named = [point for point in here if point.what == self.what]
        wanted = next(iter([*named, *here]), None) or self.first or next(iter(self.points), None)
        return None if wanted is None else self.points.index(wanted)

    @property
    def chosen(self) -> Point | None:
        return None if self.at is None else self.points[self.at]

    @property
    def before(self) -> Point | None:
        return self.points[self.at - 1] if self.at else None

    @property
    def after(self) -> Point | None:
        return self.points[self.at + 1] if self.at is not None and self.at + 1 < len(self.points) else None

    @property
    def chosen_entry(self) -> Entry | None:
        found = self.chosen
        return self.entries[found.seq - 1] if found is not None and 0 < found.seq <= len(self.entries) else None

    @cached_property
    def diff(self) -> TextDiff | None:
        found = self.chosen
        return diff_of(found.found, changes_only=self.changes_only) if found is not None and found.found else None

    @property
    def cells(self) -> Any:
        return cells_of(self.result, self.last)

    @property
    def strip_says(self) -> str:
        return strip_says(self.result, self.last)

    @property
    def fork_at(self) -> int | None:
        """The last frontier before what is shown, or of all that is there."""
        found = self.chosen
        upto = found.seq - 1 if found is not None else self.last
        return fork_points(self.run.id, self.entries).before(upto)

    @property
    def pins(self) -> tuple[Pin, Pin]:
        there = Run(release=self.target.release, release_id=self.target.release.id)
        return pin_of(self.run, self.state), pin_of(there, RunState(self.run.id))

    @property
    def model(self) -> str:
        return model_of(self.target.release.content)

    @property
    def recorded_tokens(self) -> float:
        usage = self.state.usage
        return usage.get("tokens", usage.get("input_tokens", 0) + usage.get("output_tokens", 0))

    @property
    def recorded_cost(self) -> float:
        return self.state.usage.get("cost", 0)

    def release_named(self, release_id: str) -> Release:
        return next(one.release for one in self.targets if one.release.id == release_id)

    def address(self, **changed: Any) -> str:
        """The query of this page with something changed."""
        said: dict[str, Any] = {"release": self.target.release.id, "seq": self.seq, "what": self.what or None}
        said["show"] = CHANGES if self.changes_only else None
        return "?" + urlencode({name: value for name, value in (said | changed).items() if value is not None})


def page_of(request: HttpRequest, ref: str, replay_id: int | None = None) -> ReplayPage:
    run = find_run(ref, request.user)
    if is_stateless(run):
        raise StatelessRun
    targets, target = targets_of(run, request.GET.get("release", ""))
    replays = Replay.objects.filter(run=run, purpose=Purpose.REPLAY).select_related("release").order_by("-id")
    found = replays.filter(release=target.release) if replay_id is None else replays.filter(pk=replay_id)
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
