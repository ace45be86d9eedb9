"""Acts on a run, each a page and a dialog: guard, form, command, render."""

from __future__ import annotations

import secrets
from typing import Any

from django import forms
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods

from runs.access import ANSWER, CONTROL, VIEW
from runs.commands import answer_ask
from runs.errors import AlreadyAnswered, AnswerInvalid, AskExpired, AskNotFound, RunEnded
from runs.models import ENDED, Run
from runs.pages.answering import answer_form
from runs.pages.controls import CONTROLS, Control, refusal
from runs.pages.dialogs import dialog_or_page, done
from runs.pages.family import open_below
from runs.pages.meanwhile import MovedOn, act_once, finishing, head_of
from runs.pages.way_back import way_back
from runs.queries import find_run, state_of
from runs.rest.answers import is_stateless
from runs.run_view import RunView
from runs.short_ids import short_id
from runs.signed_in import signed_in
from runs.slots import Slot
from runs.state import RunState

GET_OR_POST = ["GET", "POST"]


@require_GET
@signed_in(VIEW)
def acts(request: HttpRequest, ref: str) -> HttpResponseBase:
    """Everything that may be done to the run, and of what may not, why: the menu of a row, and of a phone."""
    run = find_run(ref, request.user)
    state = state_of(run.id)
    offers = [(act, refusal(act, run, state)) for act in CONTROLS.values()]
    asks = [slot for slot in state.unsettled() if slot.kind == "ask"] if run.status not in ENDED else []
    context = act_context(request, run, state) | {"offers": offers, "asks": asks, "records": run.intents}
    context["stateless"] = is_stateless(run)
    return dialog_or_page(request, "runs/acts.html", context)


@require_http_methods(GET_OR_POST)
@signed_in(CONTROL)
def control(request: HttpRequest, ref: str, verb: str) -> HttpResponseBase:
    run, act = find_run(ref, request.user), CONTROLS[verb]
    state = state_of(run.id)
    form = form_of(request, act, run, state)
    moved: MovedOn | None = None
    if request.method == "POST" and form.is_valid():
        try:
            act_once(run, act, form.cleaned_data, seen_on(request), request.user.get_username())
        except MovedOn as late:
            moved = late
        else:
            return done(
                request, back_to(request, run), f"{named(run)}. {act.button}: written to the journal with your name."
            )
    context = act_context(request, run, state) | {"act": act, "form": form, "moved": moved}
    context |= {"why_not": "" if moved else refusal(act, run, state), "signals": awaited(run)}
    if verb == "cancel":
        context["finishing"] = finishing(run, state.unsettled(), open_below(run.id))
    return dialog_or_page(request, "runs/control.html", context, status_of(request, moved))


def form_of(request: HttpRequest, act: Control, run: Run, state: RunState) -> forms.Form:
    """What was typed; at first what the address gives, and of a signal what the run waits for."""
    given: dict[str, Any] = {"short": short_id(run.id)} if act.verb == "cancel" else {}
    initial = request.GET.dict()
    if act.verb == "signal":
        names = awaited(run)
        initial = {"name": names[0] if len(names) == 1 else "", "signal_id": secrets.token_hex(6)} | initial
    return act.form(request.POST if request.method == "POST" else None, initial=initial, **given)


def awaited(run: Run) -> list[str]:
    """The signals that it waits for just now."""
    return list(dict.fromkeys(run.awaits_signals)) if run.status not in ENDED else []


def seen_on(request: HttpRequest) -> int | None:
    """The head seq of the run as it was on screen."""
    text = request.POST.get("seen", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else None


def act_context(request: HttpRequest, run: Run, state: RunState) -> dict[str, Any]:
    seen = seen_on(request)
    context = {"section": "runs", "run": run, "short": short_id(run.id), "back": back_to(request, run)}
    return context | {"seen": head_of(run) if seen is None else seen, "head": state.seq}


def back_to(request: HttpRequest, run: Run) -> str:
    return way_back(request, reverse("runs:run", args=[short_id(run.id)]))


def status_of(request: HttpRequest, moved: object) -> int:
    if request.method == "GET":
        return 200
    return 409 if moved else 422


@require_http_methods(GET_OR_POST)
@signed_in(ANSWER)
def answer(request: HttpRequest, ref: str, seq: int) -> HttpResponseBase:
    run = find_run(ref, request.user)
    state = state_of(run.id)
    slot = ask_at(state, seq)
    form = answer_form(slot, request.POST if request.method == "POST" else None, request.GET.get("as") == "json")
    late = ""
    if request.method == "POST" and form.is_valid():
        try:
            answer_ask(run_id=run.id, seq=seq, value=form.value, actor=request.user.get_username())
        except AnswerInvalid as wrong:
            form.refuse(str(wrong))
        except (AlreadyAnswered, AskExpired, RunEnded) as over:
            if same_answer(run, seq, form.value, request.user.get_username()):
                return answered(request, run)
            late, slot = str(over), ask_at(state_of(run.id), seq)
        else:
            return answered(request, run)
    context = act_context(request, run, state) | {"slot": slot, "form": form, "late": late}
    return dialog_or_page(request, "runs/answer.html", context, status_of(request, late))


def answered(request: HttpRequest, run: Run) -> HttpResponseBase:
    return done(request, back_to(request, run), f"{named(run)}. Your answer was written to the journal with your name.")


def named(run: Run) -> str:
    """The run in a message, which may come up on the page of another."""
    return f"{short_id(run.id)}, {run.agent}"


def same_answer(run: Run, seq: int, value: Any, actor: str) -> bool:
    """A second click: this person gave this very answer."""
    slot = ask_at(state_of(run.id), seq)
    return slot.outcome == "succeeded" and slot.settled_by == actor and slot.result == value


def ask_at(state: RunState, seq: int) -> Slot:
    for slot in RunView(state).answers:
        if slot.seq == seq:
            return slot
    raise AskNotFound(f"(seq {seq})")
