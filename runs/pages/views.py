"""The console's pages: guard, form, command, render. The address holds the state of a page."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from runs.access import CONTROL
from runs.pages.killing import kill_worker
from runs.queries import find_run
from runs.signed_in import signed_in


@require_POST
@signed_in(CONTROL)
def kill(request: HttpRequest, ref: str) -> HttpResponseBase:
    run = find_run(ref, request.user)
    name = kill_worker(run=run)
    messages.warning(request, f"{name} was killed (SIGKILL). Another worker takes over under a new epoch.")
    return redirect("runs:run", ref=ref)
