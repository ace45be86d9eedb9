"""Bulk acts: what one would do, its order, how far it is, and all there were."""

from __future__ import annotations

from functools import partial
from typing import Any
from uuid import UUID, uuid4

from django import forms
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, QueryDict
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from runs.access import BULK, REPIN, VIEW, Person, sees
from runs.bulk import (
    JUDGE,
    OUTCOMES,
    Forecast,
    Verb,
    acts_seen_by,
    find_bulk,
    forecast,
    items_of,
    order_bulk,
    progress_of,
    stop_bulk,
    verb_named,
    verdicts_of,
)
from runs.errors import BulkCountChanged, BulkEmpty, BulkTooLarge, CursorUnknown, QueryInvalid
from runs.models import BulkAct
from runs.pages.bulk_moves import judging
from runs.pages.dialogs import done
from runs.pages.forms import REASON
from runs.pages.live import event, live_answer
from runs.pages.run_filter import asked_in, pointer_at
from runs.pages.runs_list import reader_of, verbs_for
from runs.pages.runs_live import ids_in
from runs.query_language import ids_query
from runs.signed_in import signed_in

GET_OR_POST = ["GET", "POST"]
PER_PAGE = 100
REFRESHES = 1.0  # seconds
NAMES = (*OUTCOMES, "left")
SHOWN = (("", "All"), ("done", "Done"), ("skipped", "Skipped"), ("failed", "Failed"), ("left", "To do"))
OF_JUDGING = (("", "All"), ("done", "Compatible"), ("skipped", "Others"), ("failed", "Not judged"), ("left", "To do"))


class OrderForm(forms.Form):
    """`counted` is on how many it would act, as the page said; `typed` the same number, of who cancels."""

    reason = forms.CharField(max_length=2000, error_messages=REASON, widget=forms.Textarea)
    counted = forms.IntegerField(min_value=0, max_value=10**9)
    request_id = forms.CharField(max_length=60)
    typed = forms.CharField(max_length=20, required=False)

    def __init__(self, verb: Verb, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self.verb = verb

    def clean(self) -> dict[str, Any]:
        given: dict[str, Any] = super().clean() or self.cleaned_data
        counted = given.get("counted")
        typed = given.get("typed", "").replace(",", "").strip()
        if self.verb.look == "danger" and counted is not None and typed != str(counted):
            self.add_error("typed", f"Type {counted}: so many runs would be cancelled. Nothing was ordered.")
        return given


@require_GET
@signed_in(BULK)
def choose(request: HttpRequest) -> HttpResponseBase:
    """Which act it is to be, for all that the list's query matches."""
    asked = asked_in(request.GET)
    context = {"section": "runs", "asked": asked, "fault": asked.fault, "verbs": verbs_for(request)}
    return render(request, "runs/bulk_all.html", context)


@require_http_methods(GET_OR_POST)
@signed_in(BULK)
def order(request: HttpRequest) -> HttpResponseBase:
    """First the count, then the reason; nothing is written before both were seen."""
    verb = verb_named(request.GET.get("verb", ""))
    if not request.user.has_perm(verb.permission):
        raise PermissionDenied(verb.permission)
    query = query_in(request.GET)
    if verb.targeted:
        return judging(request, query, back_to(request.GET))
    form = OrderForm(verb, request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            act = ordered(request, verb, query, form)
        except (BulkEmpty, BulkTooLarge, BulkCountChanged, QueryInvalid) as no:
            return shown(request, verb, query, form, str(no), 422 if isinstance(no, QueryInvalid) else 409)
        return redirect("runs:bulk", bulk_id=act.pk)
    return shown(request, verb, query, form, "", 422 if request.method == "POST" else 200)


def ordered(request: HttpRequest, verb: Verb, query: str, form: OrderForm) -> BulkAct:
    given = form.cleaned_data
    return order_bulk(
        verb=verb.name, query=query, reason=given["reason"], actor=request.user.get_username(),
        reader=reader_of(request), expected=given["counted"], request_id=given["request_id"],
    )  # fmt: skip


def query_in(given: QueryDict) -> str:
    """The rows that were ticked, else all that the list's query matches."""
    ticked = ids_in(",".join(given.getlist("run")))
    return ids_query(ticked) if ticked and "all" not in given else asked_in(given).text


def shown(request: HttpRequest, verb: Verb, query: str, form: OrderForm, refusal: str, status: int) -> HttpResponseBase:
    told: Forecast | None = None
    fault = None
    try:
        told = forecast(verb, query, reader_of(request))
    except QueryInvalid as wrong:
        fault, status = pointer_at(query, wrong), 422
    context = {
        "section": "runs", "verb": verb, "query": query, "form": form, "refusal": refusal, "told": told, "fault": fault,
        "ticked": len(ids_in(",".join(request.GET.getlist("run")))) if "all" not in request.GET else 0,
        "request_id": form["request_id"].value() or uuid4().hex, "back": back_to(request.GET),
    }  # fmt: skip
    return render(request, "runs/bulk_order.html", context, status=status)


def back_to(given: QueryDict) -> str:
    rest = given.copy()
    for name in ("verb", "run", "all"):
        rest.pop(name, None)
    return f"{reverse('runs:list')}?{rest.urlencode()}" if rest else reverse("runs:list")


# -- under way ---------------------------------------------------------------------------------------------------------


@require_GET
@signed_in(VIEW)
def bulk(request: HttpRequest, bulk_id: int) -> HttpResponseBase:
    act = found(request, bulk_id)
    outcome = request.GET.get("outcome", "")
    items, after = items_of(act, outcome if outcome in NAMES else None, after_in(request.GET), PER_PAGE)
    shown = OF_JUDGING if act.verb == JUDGE else SHOWN
    context = progress_context(request, act) | {"outcome": outcome, "after": after, "outcomes": shown}
    context["items"] = [item for item in items if sees(request.user, item.run.agent)]
    return render(request, "runs/bulk.html", context)


def after_in(given: QueryDict) -> UUID | None:
    text = given.get("after", "")
    try:
        return UUID(text) if text else None
    except ValueError:
        raise CursorUnknown(text) from None


def found(request: HttpRequest, bulk_id: int) -> BulkAct:
    return find_bulk(bulk_id, request.user, request.user.get_username())


def progress_context(request: HttpRequest, act: BulkAct) -> dict[str, Any]:
    may = request.user.has_perm(BULK) and act.ended_at is None
    context = {"section": "runs", "act": act, "verb": verb_named(act.verb), "progress": progress_of(act)}
    verdicts = verdicts_of(act) if act.verb == JUDGE else None
    moves = (
        verdicts is not None and verdicts.compatible and request.user.has_perm(BULK) and request.user.has_perm(REPIN)
    )
    return context | {"may_stop": may, "verdicts": verdicts, "may_move": moves}


@require_POST
@signed_in(BULK)
def stop(request: HttpRequest, bulk_id: int) -> HttpResponseBase:
    act = found(request, bulk_id)
    stop_bulk(act=act, actor=request.user.get_username())
    return done(request, reverse("runs:bulk", args=[act.pk]), "Stopped. What was done stays; nothing more is done.")


@require_GET
@signed_in(VIEW)
def bulks(request: HttpRequest) -> HttpResponseBase:
    """The newest; each with how far it is."""
    acts = list(acts_seen_by(request.user, request.user.get_username())[:PER_PAGE])
    rows = [(act, verb_named(act.verb), progress_of(act)) for act in acts]
    return render(request, "runs/bulk_list.html", {"section": "runs", "rows": rows})


@require_GET
async def live_bulk(request: HttpRequest, bulk_id: int) -> HttpResponseBase:
    """Looked at each second also while no run is touched: judging writes to none."""

    def shows(user: Person) -> bool:
        return acts_seen_by(user, user.get_username()).filter(pk=bulk_id).exists()

    picture = partial(BulkPicture, request, bulk_id)
    return await live_answer(request, picture, shows=shows, pause=REFRESHES, idle=REFRESHES)


class BulkPicture:
    """Its numbers, and the outcomes of the items that the page shows."""

    def __init__(self, request: HttpRequest, bulk_id: int) -> None:
        self.request, self.bulk_id = request, bulk_id
        self.told: Any = None
        self.items = dict.fromkeys(ids_in(request.GET.get("rows", "")), "")

    def draw(self) -> str:
        act = found(self.request, self.bulk_id)
        context = progress_context(self.request, act)
        tells = (context["progress"], act.ended_at)
        if tells == self.told:
            return ""
        self.told = tells
        partials = {"#bulk-progress": render_to_string("runs/_bulk_progress.html", context, self.request)}
        for item in act.items.select_related("run").filter(run_id__in=self.items).exclude(outcome=None):
            if self.items[item.run_id] != item.outcome:
                self.items[item.run_id] = str(item.outcome)
                row = {"item": item, "act": act}
                partials[f"#item-{item.run_id}"] = render_to_string("runs/_bulk_item.html", row, self.request)
        return event(partials)
