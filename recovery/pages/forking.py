"""A fork before it starts: what is copied, what it could repeat, and the order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any
from uuid import uuid4

from django import forms
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_http_methods

from recovery.errors import ForkEditRefused
from recovery.fork_preview import Preview
from recovery.forking import fork_run, preview
from recovery.pages.fork_editors import Editor, Offer, editors_of, offers_of
from recovery.pages.refusing import on_refusal
from recovery.pages.targets import Target, targets_of
from runs.access import FORK
from runs.models import Run
from runs.pages.asked import whole
from runs.pages.dialogs import done
from runs.pages.forms import ReasonForm
from runs.queries import entries_of, find_run
from runs.short_ids import short_id
from runs.signed_in import signed_in
from runs.state import fold

GET_OR_POST = ["GET", "POST"]
MOST_EFFECTS = 100  # that are listed
MOST_POINTS = 12  # places to fork that are offered on either side


class ForkForm(ReasonForm):
    """`request_id`: a second click is the same order. `repeats`: how many effects the page named."""

    read = forms.BooleanField(required=False)
    request_id = forms.CharField(max_length=60)

    def __init__(self, data: Any = None, *, repeats: int = 0) -> None:
        super().__init__(data)
        self.repeats = repeats

    def clean(self) -> dict[str, Any]:
        given: dict[str, Any] = super().clean() or self.cleaned_data
        if self.repeats and not given.get("read"):
            self.add_error("read", "Tick that you have read what could happen twice.")
        return given


@dataclass
class ForkPage:
    """What the page shows; `named`: the release that was asked for, by digest or version."""

    run: Run
    found: Preview
    targets: Sequence[Target]
    named: str
    offers: Sequence[Offer] = ()
    editors: Sequence[Editor] = ()
    own_release: str = ""

    @property
    def short(self) -> str:
        return short_id(self.run.id)

    @property
    def effects(self) -> Sequence[Any]:
        """What could repeat stands first."""
        return sorted(self.found.effects, key=lambda effect: not effect.could_repeat)[:MOST_EFFECTS]

    @property
    def more(self) -> int:
        return max(len(self.found.effects) - MOST_EFFECTS, 0)

    @property
    def loud(self) -> bool:
        """Whether something that nobody de-duplicates could happen twice."""
        return any(effect.effect != "keyed" for effect in self.found.repeatable)

    @property
    def classes(self) -> Sequence[tuple[str, int]]:
        """How many could repeat, by effect class."""
        return list(self.found.by_class.items())

    @property
    def edited(self) -> Sequence[int]:
        return [editor.offer.seq for editor in self.editors]

    @property
    def unedited(self) -> Sequence[Offer]:
        return [offer for offer in self.offers if offer.seq not in self.edited]

    @property
    def is_judged(self) -> bool:
        """Whether a worker decides the copied part again before anything is forked."""
        return bool(self.editors) or (self.found.allowed and self.found.release.id != self.own_release)

    @property
    def next_step(self) -> int:
        return self.found.steps + 1

    @property
    def points(self) -> Sequence[int]:
        """The places around, where one may fork."""
        before = [seq for seq in self.found.points if seq <= self.found.at][-MOST_POINTS:]
        return [*before, *[seq for seq in self.found.points if seq > self.found.at][:MOST_POINTS]]

    @cached_property
    def request_id(self) -> str:
        """A new one: of the next order that is given here."""
        return uuid4().hex

    def address(self, add: int | None = None, drop: int | None = None, **changed: Any) -> str:
        """The query of this page with something changed; with one entry more to be edited, or one less."""
        edited = [seq for seq in (*self.edited, add) if seq is not None and seq != drop]
        said: dict[str, Any] = {"at": self.found.at, "release": self.named or None, "edit": edited} | changed
        return "?" + urlencode({name: value for name, value in said.items() if value is not None}, doseq=True)


def page_of(request: HttpRequest, ref: str) -> ForkPage:
    run = find_run(ref, request.user)
    named = request.GET.get("release", "")
    found = preview(run, whole(request.GET.get("at")), named or None)
    targets, _ = targets_of(run, found.release.id)
    page = ForkPage(run, found, targets, named)
    if found.allowed:
        entries = entries_of(run.id)
        state = fold(run.id, entries[: found.at])
        page.own_release = state.release_id
        page.offers = offers_of(entries, found.at, state, found.release)
        seqs = [seq for text in request.GET.getlist("edit") if (seq := whole(text)) is not None]
        page.editors = editors_of(page.offers, seqs, request.POST if request.method == "POST" else None)
    return page


@require_http_methods(GET_OR_POST)
@signed_in(FORK)
def fork(request: HttpRequest, ref: str) -> HttpResponseBase:
    page = page_of(request, ref)
    form = ForkForm(request.POST if request.method == "POST" else None, repeats=len(page.found.repeatable))
    on_refusal(request, partial(refused, request, ref, form))
    if request.method == "GET" or not all([form.is_valid(), *(editor.form.is_valid() for editor in page.editors)]):
        return shown(request, page, form, 422 if form.is_bound else 200)
    made = ordered(page, form, request.user.get_username())
    if made is None:
        return shown(request, page, form, 422)
    address = reverse("runs:run", args=[short_id(made.id)])
    return done(request, address, f"Forked from {page.short} at seq {page.found.at}. The fork goes on by itself.")


def ordered(page: ForkPage, form: ForkForm, actor: str) -> Run | None:
    """The fork; None where an edit was refused, which is told at its field."""
    editors = [editor for editor in page.editors if editor.changes]
    edits = [{"seq": editor.offer.seq, "value": editor.value} for editor in editors]
    try:
        return fork_run(
            run_id=page.run.id, at=page.found.at, reason=form.cleaned_data["reason"], actor=actor, edits=edits,
            release=page.named or None, request_id=form.cleaned_data["request_id"],
        )  # fmt: skip
    except ForkEditRefused as wrong:
        for fault in wrong.errors:
            editors[int(fault["field"].rpartition(".")[2])].form.refuse(fault["message"])
        return None


def shown(request: HttpRequest, page: ForkPage, form: ForkForm, status: int, **more: Any) -> HttpResponse:
    context = {"section": "runs", "page": page, "run": page.run, "short": page.short, "form": form} | more
    return render(request, "recovery/fork.html", context, status=status)


def refused(request: HttpRequest, ref: str, form: ForkForm, error: Exception, status: int) -> HttpResponse:
    """What was typed stays, in front of what is so now."""
    return shown(request, page_of(request, ref), form, status, no=error)
