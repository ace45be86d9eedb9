"""The console's pages: guard, form, command, render. The address holds the state of a page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.db.models import Count
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from journal.payloads import payload_store
from runs.access import APPROVE, CONTROL, VIEW, Person, seen_by
from runs.commands import decide_approval
from runs.listing import list_runs
from runs.models import Run, Status
from runs.pages.forms import ApprovalForm, RunFilter
from runs.pages.killing import kill_worker
from runs.pages.run_page import Reading
from runs.queries import find_run
from runs.short_ids import short_id
from runs.signed_in import signed_in

GET_OR_POST = ["GET", "POST"]


@require_GET
@signed_in(VIEW)
def home(request: HttpRequest) -> HttpResponseBase:
    return redirect("runs:list")


@require_GET
@signed_in(VIEW)
def list_page(request: HttpRequest) -> HttpResponseBase:
    wanted, asked = run_filter(request)
    runs, cursor = list_runs(**wanted, user=request.user)
    context: dict[str, Any] = {
        "section": "runs",
        "runs": runs,
        "cursor": cursor,
        "asked": asked,
        "facets": facets(wanted["status"], request.user),
    }
    context["parent"] = find_run(asked["parent"], request.user) if asked["parent"] else None
    context["stateless"] = stateless_among(runs)
    context["rows"] = ",".join(run.id.hex for run in runs)
    return render(request, "runs/list.html", context)


def run_filter(request: HttpRequest) -> tuple[dict[str, Any], dict[str, Any]]:
    """The arguments of `list_runs` that the address asks for, and the same as the form shows them.

    `q=label:key:value` is a label too, `q=parent:r-…` a parent. Raises RunNotFound for a parent that is none.
    """
    form = RunFilter(request.GET)
    form.is_valid()
    asked = {name: form.cleaned_data.get(name, "") for name in form.fields} | {"faults": form.errors}
    for word in ("label", "parent"):
        if asked["q"].startswith(f"{word}:"):
            asked |= {word: asked["q"].removeprefix(f"{word}:"), "q": ""}
    name, colon, value = asked["label"].partition(":")
    wanted = {
        "status": asked["status"] or [],
        "agent": asked["agent"] or None,
        "text": asked["q"] or None,
        "after": asked["after"] or None,
        "labels": {name: value} if colon and "\0" not in asked["label"] else None,
        "parent": find_run(asked["parent"], request.user).id if asked["parent"] else None,
    }
    return wanted, asked


def stateless_among(runs: Sequence[Run]) -> set[UUID]:
    """Which of them keep no journal. Lists come without the inputs that tell it."""
    found = Run.objects.filter(id__in=[run.id for run in runs], input__isnull=False)
    return set(found.values_list("id", flat=True))


def facets(chosen: list[str], user: Person) -> list[dict[str, Any]]:
    """Runs by status, ended ones uncounted: an index gives the few that are open, the rest may be millions."""
    open_ones = [status for status in Status if status not in (Status.DONE, Status.FAILED, Status.CANCELLED)]
    rows = seen_by(user, Run.objects.filter(status__in=open_ones)).values_list("status").annotate(Count("id"))
    counts = dict(rows)
    order = sorted(Status, key=lambda status: URGENCY.get(status, 9))
    return [
        {"status": s.value, "chosen": s.value in chosen, "count": counts.get(s.value, 0) if s in open_ones else None}
        for s in order
    ]


URGENCY = {Status.NEEDS_RECONCILIATION: 0, Status.AWAITING_APPROVAL: 1, Status.RUNNING: 2, Status.WAITING: 3}


@require_http_methods(GET_OR_POST)
@signed_in(APPROVE)
def approval(request: HttpRequest, ref: str, seq: int) -> HttpResponseBase:
    run = find_run(ref, request.user)
    form = ApprovalForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        decide_approval(run_id=run.id, seq=seq, actor=request.user.get_username(), **form.cleaned_data)
        messages.success(request, "Your decision was written to the journal with your name.")
        return redirect("runs:run", ref=ref)
    status = 422 if request.method == "POST" else 200
    return render(request, "runs/approval.html", intent_context(run, seq) | {"form": form}, status=status)


def intent_context(run: Run, seq: int) -> dict[str, Any]:
    page = Reading(run.id).refresh().page(run)
    slot = next((slot for slot in page.state.slots.values() if slot.seq == seq and slot.kind == "call"), None)
    if slot is None:
        raise Http404("There is no such intent.")
    return {
        "section": "runs",
        "run": run,
        "short": short_id(run.id),
        "page": page,
        "slot": slot,
        "asked": payload_store().resolve(slot.body)["args"],  # whole, wherever they are kept: this is what is signed
        "can_probe": any(tool["name"] == slot.tool and tool["probe"] for tool in run.release.content["tools"]),
    }


@require_POST
@signed_in(CONTROL)
def kill(request: HttpRequest, ref: str) -> HttpResponseBase:
    run = find_run(ref, request.user)
    name = kill_worker(run=run)
    messages.warning(request, f"{name} was killed (SIGKILL). Another worker takes over under a new epoch.")
    return redirect("runs:run", ref=ref)


HEADINGS = {404: "Not found", 410: "Too late: it has expired"}
AWAY = 503
TOLD = ("actor", "verdict", "at", "run_status", "digest", "candidates")


def refused(request: HttpRequest, error: Exception, status: int) -> HttpResponse:
    """A command said no: in words, with who was first where somebody was."""
    if status == AWAY:  # whoever is asking cannot be looked up either
        return HttpResponse(render_to_string("away.html"), status=AWAY, headers={"Retry-After": "2"})
    heading = HEADINGS.get(status, "Your answer was not written" if request.method == "POST" else "Not shown")
    facts = {name: vars(error)[name] for name in TOLD if vars(error).get(name)}
    parts = request.path.strip("/").split("/")
    back = f"/runs/{parts[1]}" if parts[0] == "runs" and len(parts) > 2 else ""
    context = {"section": "runs", "heading": heading, "said": str(error), "facts": facts, "back": back}
    return render(request, "refused.html", context, status=status)
