"""Acts on a run, each a page and a dialog: guard, form, command, render."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from runs.access import ANSWER, CONTROL
from runs.commands import answer_ask
from runs.errors import AnswerInvalid, AskNotFound
from runs.models import Run
from runs.pages.answering import answer_form
from runs.pages.controls import CONTROLS
from runs.pages.family import open_below
from runs.queries import find_run, state_of
from runs.short_ids import short_id
from runs.signed_in import signed_in
from runs.slots import Slot

GET_OR_POST = ["GET", "POST"]


@require_http_methods(GET_OR_POST)
@signed_in(CONTROL)
def control(request: HttpRequest, ref: str, verb: str) -> HttpResponseBase:
    run, act = find_run(ref, request.user), CONTROLS[verb]
    form = act.form(request.POST or None, initial=request.GET.dict())
    if request.method == "POST" and form.is_valid():
        act.command(run_id=run.id, actor=request.user.get_username(), **form.cleaned_data)
        messages.success(request, f"{act.button}: written to the journal with your name.")
        return redirect("runs:run", ref=ref)
    context = {"section": "runs", "run": run, "short": short_id(run.id), "act": act, "form": form}
    context["below"] = open_below(run.id) if verb == "cancel" else 0
    return render(request, "runs/control.html", context, status=422 if request.method == "POST" else 200)


@require_http_methods(GET_OR_POST)
@signed_in(ANSWER)
def answer(request: HttpRequest, ref: str, seq: int) -> HttpResponseBase:
    run = find_run(ref, request.user)
    slot = ask_at(run, seq)
    form = answer_form(slot, request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            answer_ask(run_id=run.id, seq=seq, value=form.value, actor=request.user.get_username())
        except AnswerInvalid as wrong:
            form.refuse(str(wrong))
        else:
            messages.success(request, "Your answer was written to the journal with your name.")
            return redirect("runs:run", ref=ref)
    context = {"section": "runs", "run": run, "short": short_id(run.id), "slot": slot, "form": form}
    return render(request, "runs/answer.html", context, status=422 if request.method == "POST" else 200)


def ask_at(run: Run, seq: int) -> Slot:
    for slot in state_of(run.id).slots.values():
        if slot.seq == seq and slot.kind == "ask":
            return slot
    raise AskNotFound(f"(seq {seq})")
