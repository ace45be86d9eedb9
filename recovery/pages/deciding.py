"""Deciding what waits for approval: each act a page and a dialog; guard, form, command, render."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from django.forms import Form
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from journal.tags import Sealed
from recovery.forms import ApproveForm, AskForm, EditNoteForm, OldApprovalForm, RejectForm, ReplyForm
from recovery.items import ItemPage
from recovery.pages.listing import item_context
from recovery.pages.refusing import no_of, on_refusal
from recovery.signers import too_few
from runs.access import ANSWER, APPROVE
from runs.approvals import answer_question, decide_approval, groups_of
from runs.errors import EditInvalid
from runs.pages.dialogs import dialog_or_page, done
from runs.pages.schema_forms import SchemaForm
from runs.queries import find_run
from runs.signed_in import signed_in

GET_OR_POST = ["GET", "POST"]
DONE = {
    "approve": "You approved it: written to the journal with your name.",
    "deny": "You rejected it: nothing is sent, and the agent reads your reason.",
    "edit": "You changed the arguments: they have to be approved anew.",
    "ask": "Your question was written: the item waits for its answer.",
}


def address(page: ItemPage) -> str:
    return reverse("recovery:item", args=[page.short, page.slot.seq])


def decide(request: HttpRequest, page: ItemPage, verdict: str, form: Form, args: Any = None) -> HttpResponse:
    given = form.cleaned_data
    decide_approval(
        run_id=page.run.id, seq=page.slot.seq, verdict=verdict, digest=given["digest"], note=given.get("note", ""),
        args=args, actor=request.user.get_username(), groups=groups_of(request.user),
    )  # fmt: skip
    return done(request, address(page), f"{page.named}. {DONE[verdict]}")


def shown(
    request: HttpRequest, template: str, page: ItemPage, form: Form, status: int = 0, **more: Any
) -> HttpResponse:
    """The dialog, or the page that it is without scripts."""
    context = item_context(request, page) | {"form": form} | more
    return dialog_or_page(request, f"recovery/{template}.html", context, status or (422 if form.is_bound else 200))


def refused(
    request: HttpRequest, template: str, seq: int, form: Form, more: dict[str, Any], error: Exception, status: int
) -> HttpResponse:
    """What was written stays; the item is read again, since it is not what it was."""
    page = ItemPage(find_run(str(more.pop("run_id")), request.user), seq)
    no = no_of(error, page, form.cleaned_data.get("digest", ""), request.user.get_username())
    return shown(request, template, page, form, status, no=no, **more)


def opened(request: HttpRequest, template: str, ref: str, seq: int, form: Form, **more: Any) -> ItemPage:
    page = ItemPage(find_run(ref, request.user), seq)
    given = {"run_id": page.run.id} | more
    on_refusal(request, partial(refused, request, template, seq, form, given))
    return page


def said(request: HttpRequest, ref: str, seq: int, template: str, verdict: str, form: Form) -> HttpResponse:
    """A verdict whose form is all that there is to it."""
    page = opened(request, template, ref, seq, form)
    if request.method == "POST" and form.is_valid():
        return decide(request, page, verdict, form)
    return shown(request, template, page, form)


@require_http_methods(GET_OR_POST)
@signed_in(APPROVE)
def approve(request: HttpRequest, ref: str, seq: int) -> HttpResponseBase:
    return said(request, ref, seq, "approve", "approve", ApproveForm(request.POST or None))


@require_http_methods(GET_OR_POST)
@signed_in(APPROVE)
def reject(request: HttpRequest, ref: str, seq: int) -> HttpResponseBase:
    return said(request, ref, seq, "reject", "deny", RejectForm(request.POST or None))


@require_http_methods(GET_OR_POST)
@signed_in(APPROVE)
def ask_back(request: HttpRequest, ref: str, seq: int) -> HttpResponseBase:
    return said(request, ref, seq, "ask_back", "ask", AskForm(request.POST or None))


def editable(page: ItemPage) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Schema and values of the arguments that a person may read. The command keeps what is sealed as it is."""
    schema = dict(page.contract.get("parameters") or {})
    sealed = {name for name, value in page.args.items() if isinstance(value, Sealed)}
    if sealed:
        schema["properties"] = {name: s for name, s in schema.get("properties", {}).items() if name not in sealed}
        schema["required"] = [name for name in schema.get("required", ()) if name not in sealed]
    return schema, {name: value for name, value in page.args.items() if name not in sealed}


@require_http_methods(GET_OR_POST)
@signed_in(APPROVE)
def edit(request: HttpRequest, ref: str, seq: int) -> HttpResponseBase:
    form = EditNoteForm(request.POST or None)
    page = ItemPage(find_run(ref, request.user), seq)
    schema, initial = editable(page)
    args = SchemaForm(schema, request.POST or None, initial=initial, prefix="args")
    few = too_few(page, editor=request.user.get_username())
    opened(request, "edit", ref, seq, form, args=args, few=few)
    if request.method == "POST" and all([form.is_valid(), args.is_valid()]):
        try:
            return decide(request, page, "edit", form, args.value)
        except EditInvalid as wrong:
            args.refuse(str(wrong))
    return shown(request, "edit", page, form, args=args, few=few)


@require_http_methods(GET_OR_POST)
@signed_in(ANSWER)
def reply(request: HttpRequest, ref: str, seq: int) -> HttpResponseBase:
    form = ReplyForm(request.POST or None)
    page = opened(request, "reply", ref, seq, form)
    if request.method == "POST" and form.is_valid():
        text = form.cleaned_data["text"]
        answer_question(run_id=page.run.id, seq=seq, text=text, actor=request.user.get_username())
        return done(request, address(page), f"{page.named}. Your answer was written: it can be approved again.")
    return shown(request, "reply", page, form)


@require_http_methods(GET_OR_POST)
@signed_in(APPROVE)
def old_approval(request: HttpRequest, ref: str, seq: int) -> HttpResponseBase:
    """Where approvals were decided before there was an inbox."""
    page = ItemPage(find_run(ref, request.user), seq)
    form = OldApprovalForm(request.POST or None)
    if request.method == "GET" or page.slot.kind != "call":
        return redirect(address(page), permanent=False)
    if form.is_valid():
        return decide(request, page, form.cleaned_data["verdict"], form)
    template = "reject" if form.cleaned_data.get("verdict") == "deny" else "approve"
    return shown(request, template, page, form)
