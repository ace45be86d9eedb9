"""Saved views: a query of the list under a name, a person's own or everybody's."""

from __future__ import annotations

from typing import Any

from django import forms
from django.db import transaction
from django.http import Http404, HttpRequest, QueryDict
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from runs import audit
from runs.access import SAVE_VIEW, SHARE_VIEW
from runs.models import SavedView
from runs.pages.dialogs import dialog_or_page, done
from runs.pages.facets import BUILT_IN
from runs.pages.run_filter import asked_in
from runs.signed_in import signed_in

GET_OR_POST = ["GET", "POST"]
MOST = 50  # of a person


class ViewForm(forms.Form):
    name = forms.CharField(max_length=60, error_messages={"required": "Write a name: it is the tab's word."})
    shared = forms.BooleanField(required=False)

    def clean_name(self) -> str:
        name = str(self.cleaned_data["name"])
        if name.casefold() in {built_in.casefold() for built_in, _ in BUILT_IN}:
            raise forms.ValidationError("There is a tab of this name already. Write another one.")
        return name


@require_http_methods(GET_OR_POST)
@signed_in(SAVE_VIEW)
def save(request: HttpRequest) -> HttpResponseBase:
    """Keep what the list shows under a name."""
    asked = asked_in(request.GET)
    form = ViewForm(request.POST or None)
    own = SavedView.objects.filter(owner=request.user.pk)
    if request.method == "POST" and form.is_valid():
        if own.filter(name=form.cleaned_data["name"]).exists():
            form.add_error("name", "You have a view of this name. Write another one, or delete that view first.")
        elif own.count() >= MOST:
            form.add_error("name", f"You have {MOST} views. Delete one first.")
        else:
            with transaction.atomic():
                view = SavedView(owner_id=request.user.pk or 0, query=asked.address)
                write(request, view, form, "view.save")
            return done(request, f"{reverse('runs:list')}?{view.query}", f"View {view.name} is saved.")
    return shown(request, form, {"asked": asked, "view": None})


@require_http_methods(GET_OR_POST)
@signed_in(SAVE_VIEW)
def change(request: HttpRequest, view_id: int) -> HttpResponseBase:
    """Rename it, share it, or no longer."""
    view = own_view(request, view_id)
    form = ViewForm(request.POST or None, initial={"name": view.name, "shared": view.shared})
    if request.method == "POST" and form.is_valid():
        others = SavedView.objects.filter(owner=request.user.pk, name=form.cleaned_data["name"]).exclude(pk=view.pk)
        if others.exists():
            form.add_error("name", "You have another view of this name.")
        else:
            with transaction.atomic():
                write(request, view, form, "view.change")
            return done(request, f"{reverse('runs:list')}?{view.query}", f"View {view.name} is changed.")
    return shown(request, form, {"asked": asked_in(QueryDict(view.query)), "view": view})


@require_http_methods(["POST"])
@signed_in(SAVE_VIEW)
def delete(request: HttpRequest, view_id: int) -> HttpResponseBase:
    view = own_view(request, view_id)
    with transaction.atomic():
        audit.record(request.user.get_username(), "view.delete", subject=view.name, query=view.query)
        view.delete()
    return done(request, reverse("runs:list"), f"View {view.name} is deleted. No run has changed.")


def own_view(request: HttpRequest, view_id: int) -> SavedView:
    view = SavedView.objects.filter(pk=view_id, owner=request.user.pk).first()
    if view is None:
        raise Http404("You have no such view.")
    return view


def write(request: HttpRequest, view: SavedView, form: ViewForm, act: str) -> None:
    view.name = form.cleaned_data["name"]
    view.shared = form.cleaned_data["shared"] and request.user.has_perm(SHARE_VIEW)
    view.save()
    audit.record(request.user.get_username(), act, subject=view.name, query=view.query, shared=view.shared)


def shown(request: HttpRequest, form: ViewForm, context: dict[str, Any]) -> HttpResponseBase:
    given = {"section": "runs", "form": form, "may_share": request.user.has_perm(SHARE_VIEW)} | context
    return dialog_or_page(request, "runs/view_saved.html", given, 422 if request.method == "POST" else 200)
