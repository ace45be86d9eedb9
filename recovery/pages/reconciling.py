"""Saying what became of a call that nobody knows of: pages and dialogs; guard, form, command, render."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from recovery.commands import reconcile_intent
from recovery.errors import RecoveryError, ResultInvalid
from recovery.forms import OldReconcileForm, ProbeForm, ReconcileForm
from recovery.inbox import PAGE
from recovery.items import ItemPage
from recovery.pages.deciding import address, refused, shown
from recovery.pages.live import ids_in
from recovery.pages.refusing import on_refusal
from runs.access import RECONCILE
from runs.errors import RunsError
from runs.pages.dialogs import done
from runs.pages.schema_forms import SchemaForm
from runs.queries import find_run
from runs.short_ids import short_id
from runs.signed_in import signed_in

GET_OR_POST = ["GET", "POST"]
DONE = {
    "probe": "A worker asks the tool; its answer appears here.",
    "happened": "It happened: written to the journal with your name. Nothing was sent.",
    "never_happened": "It never happened: written with your name. A worker sends it once, with the same key.",
    "abort": "The run is aborted. The question stays on record.",
}


@require_http_methods(GET_OR_POST)
@signed_in(RECONCILE)
def reconcile(request: HttpRequest, ref: str, seq: int) -> HttpResponseBase:
    page = ItemPage(find_run(ref, request.user), seq)
    form = ReconcileForm(
        request.POST or None, request.FILES or None,
        tool=page.slot.tool, run=page.short, unkeyed=page.slot.effect == "unkeyed",
    )  # fmt: skip
    result = result_form(page, request)
    more = {"run_id": page.run.id, "result": result}
    on_refusal(request, partial(refused, request, "reconcile", seq, form, more))
    if request.method == "POST" and form.is_valid() and not contradicts(page, request, form):
        happened = form.cleaned_data["verdict"] == "happened" and not form.cleaned_data["unknown"]
        if not happened or result.is_valid():
            try:
                return settle(request, page, form, result.value if happened else None)
            except ResultInvalid as wrong:
                result.refuse(str(wrong))
    return shown(request, "reconcile", page, form, result=result)


def result_form(page: ItemPage, request: HttpRequest) -> SchemaForm:
    """By the tool's return type; where nobody declared one, JSON."""
    known = not request.POST.get("unknown") or is_typed(page, request)
    chosen = request.POST.get("verdict") == "happened" and known
    return SchemaForm(page.contract.get("returns") or {}, request.POST if chosen else None, prefix="result")


def contradicts(page: ItemPage, request: HttpRequest, form: ReconcileForm) -> bool:
    """Whether a result was written though it is said not to be known: then one of the two is a mistake."""
    if form.cleaned_data["verdict"] != "happened" or not form.cleaned_data["unknown"] or not is_typed(page, request):
        return False
    form.add_error("unknown", "A result stands above. Take it away, or do not say that it is not known.")
    return True


def is_typed(page: ItemPage, request: HttpRequest) -> bool:
    """Whether some field of the result holds what the page did not put there."""
    offered = SchemaForm(page.contract.get("returns") or {}, prefix="result").initial
    names = [name for name in request.POST if name.partition("/")[0] == "result" and ":" not in name]
    return any(request.POST[name].strip() not in ("", str(offered.get(name, "")), "on") for name in names)


def settle(request: HttpRequest, page: ItemPage, form: ReconcileForm, result: Any) -> HttpResponse:
    given = form.cleaned_data
    reconcile_intent(
        run_id=page.run.id, seq=page.slot.seq, verdict=given["verdict"], evidence=given["said"], result=result,
        attempt=given["attempt"], external_id=given["external_id"] if given["verdict"] == "happened" else "",
        file=form.evidence_file, actor=request.user.get_username(),
    )  # fmt: skip
    return done(request, address(page), f"{page.named}. {DONE[given['verdict']]}")


@require_http_methods(GET_OR_POST)
@signed_in(RECONCILE)
def old_reconcile(request: HttpRequest, ref: str, seq: int) -> HttpResponseBase:
    """Where intents were reconciled before there was an inbox."""
    page = ItemPage(find_run(ref, request.user), seq)
    if request.method == "GET":
        return redirect(address(page))
    form = OldReconcileForm(request.POST)
    if form.is_valid():
        reconcile_intent(run_id=page.run.id, seq=seq, actor=request.user.get_username(), **form.cleaned_data)
        return done(request, address(page), f"{page.named}. {DONE[form.cleaned_data['verdict']]}")
    again = ReconcileForm(request.POST, tool=page.slot.tool, run=page.short)
    again.is_valid()
    for fault in form.errors.get("result", []):
        again.add_error(None, fault)
    return shown(request, "reconcile", page, again, result=result_form(page, request))


@dataclass(frozen=True, slots=True)
class Asked:
    """What became of asking one tool. `said`: why it was not asked; empty: it was."""

    run_id: UUID
    seq: int
    said: str

    @property
    def short(self) -> str:
        return short_id(self.run_id)


@require_POST
@signed_in(RECONCILE)
def ask_tools(request: HttpRequest) -> HttpResponseBase:
    """Several at once: it sends nothing and settles nothing by itself. There is no such thing for verdicts."""
    form = ProbeForm(request.POST)
    asked: list[Asked] = []
    if form.is_valid():
        chosen = ids_in(",".join(form.cleaned_data["item"][:PAGE]))
        asked = [ask_one(request, id, form.cleaned_data["evidence"]) for id in chosen]
    context = {"section": "inbox", "form": form, "asked": asked, "done": sum(not one.said for one in asked)}
    return render(request, "recovery/asked.html", context, status=200 if form.is_valid() else 422)


def ask_one(request: HttpRequest, id: str, evidence: str) -> Asked:
    run, _, seq = id.partition("-")
    said = ""
    try:
        run_id = find_run(str(UUID(run)), request.user).id
        reconcile_intent(
            run_id=run_id, seq=int(seq), verdict="probe", evidence=evidence, actor=request.user.get_username()
        )
    except (RunsError, RecoveryError) as no:
        said = str(no)
    return Asked(UUID(run), int(seq), said)
