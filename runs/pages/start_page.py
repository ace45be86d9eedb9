"""Starting a run by hand: a form made from what the agent takes, sent once however often it is clicked."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django import forms
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods

from runs.access import START, Person, seen_by, sees
from runs.commands import start_run
from runs.errors import AgentNotFound, BadInput, BusinessIdTaken, InputRefused, RequestKeyTaken
from runs.models import Release, Stage, WorkerSession
from runs.pages.dialogs import dialog_or_page, done
from runs.pages.schema_forms import SchemaForm
from runs.short_ids import short_id
from runs.signed_in import signed_in
from runs.staging import main_release

MOST_OFFERED = 20  # releases


@dataclass(frozen=True, slots=True)
class Offered:
    """A release that a run may be started under, and how many live workers serve it."""

    release: Release
    workers: int

    @property
    def label(self) -> str:
        served = f"served by {self.workers} worker{'s' if self.workers != 1 else ''}" if self.workers else "not served"
        share = f" {self.release.share}%" if self.release.stage == Stage.CANARY else ""
        return f"{self.release.version}, {self.release.stage}{share}, {served}"


class StartForm(forms.Form):
    """What is given beside the input."""

    release = forms.ChoiceField(label="Release", widget=forms.Select)
    labels = forms.CharField(
        label="Labels", required=False, max_length=4_000, widget=forms.Textarea(attrs={"spellcheck": "false"}),
        help_text="One a line, as name:value. Optional.",
    )  # fmt: skip
    priority = forms.TypedChoiceField(
        label="Priority", coerce=int, initial=0, choices=[(n, str(n)) for n in range(10)],
        help_text="Runs of a higher one are claimed sooner.",
    )  # fmt: skip
    request_key = forms.CharField(max_length=200, widget=forms.HiddenInput)

    def __init__(self, offered: Sequence[Offered], data: Any = None, **given: Any) -> None:
        super().__init__(data, **given)
        self.fields["release"].choices = [(one.release.id, one.label) for one in offered]  # type: ignore[attr-defined]

    def clean_labels(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for at, line in enumerate(str(self.cleaned_data["labels"]).splitlines(), start=1):
            name, colon, value = line.strip().partition(":")
            if line.strip() and not (colon and name):
                raise forms.ValidationError(f"Line {at}: a label is written name:value.")
            found |= {name.strip(): value.strip()} if line.strip() else {}
        return found


@require_GET
@signed_in(START)
def choose(request: HttpRequest) -> HttpResponseBase:
    names = seen_by(request.user, Release.objects.order_by("agent")).values_list("agent", flat=True).distinct()
    return render(request, "runs/start_choose.html", {"section": "runs", "names": list(names)})


@require_http_methods(["GET", "POST"])
@signed_in(START)
def start(request: HttpRequest, name: str) -> HttpResponseBase:
    offered = offered_to(name, request.user)
    posted = request.POST if request.method == "POST" else None
    form = StartForm(offered, posted, initial={"request_key": secrets.token_urlsafe(12)} | request.GET.dict())
    chosen = chosen_of(offered, str(form["release"].value() or ""))
    entered = input_form(chosen.release, posted)
    context = {"section": "runs", "name": name, "form": form, "offered": chosen, "entered": entered}
    shows = posted.get("show") if posted is not None else None
    if posted is None or shows:
        return dialog_or_page(request, "runs/start.html", context | shown_as(chosen.release, entered, shows))
    if all([form.is_valid(), entered.is_valid()]):  # both: each tells its own faults
        try:
            given = form.cleaned_data | {"agent": name, "input": entered.value}
            run, _ = start_run(**given, actor=request.user.get_username())
            return done(request, reverse("runs:run", args=[short_id(run.id)]), f"{name} is started.")
        except (RequestKeyTaken, BusinessIdTaken) as taken:
            context["taken"] = taken
            context["another_key"] = secrets.token_urlsafe(12)  # for whoever wants a second run by it
            return dialog_or_page(request, "runs/start.html", context, 409)
        except InputRefused as wrong:
            entered.refuse(str(wrong))
        except BadInput as wrong:
            form.add_error(None, str(wrong))
    return dialog_or_page(request, "runs/start.html", context, 422)


def shown_as(release: Release, entered: SchemaForm, shows: str | None) -> dict[str, Any]:
    """The input in another way, as far as it was readable: as JSON, as fields, or by another release's type."""
    if shows is None or (not entered.is_valid() and entered.top.part.kind == "json" and entered.written is None):
        return {}
    return {"entered": input_form(release, None, entered.written, as_json=shows == "json")}


def input_form(release: Release, data: Any, initial: Any = None, as_json: bool = False) -> SchemaForm:
    """Of an agent that does not say what it takes: JSON, or nothing."""
    takes = release.contract.get("input")
    return SchemaForm(takes or {}, data, initial, prefix="input", as_json=as_json, required=takes is not None)


def chosen_of(offered: Sequence[Offered], release_id: str) -> Offered:
    return next((one for one in offered if one.release.id == release_id), offered[0])


def offered_to(name: str, user: Person) -> list[Offered]:
    """Releases that may be started and that live workers serve: the current one, then the newest first. With none of
    these the current one, or the newest. Raises AgentNotFound."""
    known = list(Release.objects.filter(agent=name).order_by("-created_at", "-id")) if "\0" not in name else []
    if not known or not sees(user, name):
        raise AgentNotFound(f"({name[:60]})")
    workers, main = serving(), main_release(known)
    takes = [release for release in known if release.stage not in (Stage.RETIRING, Stage.RETIRED) and release != main]
    served = [Offered(release, workers[release.id]) for release in [main, *takes] if workers.get(release.id)]
    return served[:MOST_OFFERED] or [Offered(main, 0)]


def serving() -> dict[str, int]:
    """How many live workers serve each release, by its id."""
    found: dict[str, int] = {}
    for serves in WorkerSession.objects.filter(ended_at__isnull=True).values_list("serves", flat=True):
        for release_id in serves:
            found[release_id] = found.get(release_id, 0) + 1
    return found
