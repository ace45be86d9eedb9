"""The pages of putting things right: guard, form, command, render."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from recovery.commands import reconcile_intent
from recovery.forms import ReconcileForm
from runs.access import RECONCILE
from runs.pages.views import intent_context
from runs.queries import find_run
from runs.signed_in import signed_in


@require_http_methods(["GET", "POST"])
@signed_in(RECONCILE)
def reconcile(request: HttpRequest, ref: str, seq: int) -> HttpResponseBase:
    run = find_run(ref, request.user)
    form = ReconcileForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        reconcile_intent(run_id=run.id, seq=seq, actor=request.user.get_username(), **form.cleaned_data)
        messages.success(request, "Your answer was written to the journal with your name.")
        return redirect("runs:run", ref=ref)
    status = 422 if request.method == "POST" else 200
    return render(request, "recovery/reconcile.html", intent_context(run, seq) | {"form": form}, status=status)
