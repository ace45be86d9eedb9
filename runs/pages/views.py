"""The console's pages: guard, form, command, render. The address holds the state of a page."""

from __future__ import annotations

from collections.abc import Callable

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.views.decorators.http import require_GET, require_POST

from runs.access import CONTROL, VIEW
from runs.pages.killing import kill_worker
from runs.queries import find_run
from runs.signed_in import signed_in

GET_OR_POST = ["GET", "POST"]


@require_GET
@signed_in(VIEW)
def home(request: HttpRequest) -> HttpResponseBase:
    return redirect("runs:list")


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
    say_no: Callable[[Exception, int], HttpResponse] | None = request.__dict__.get("say_no")
    if say_no is not None:  # the page's own way to say it
        return say_no(error, status)
    heading = HEADINGS.get(status, "Your answer was not written" if request.method == "POST" else "Not shown")
    facts = {name: vars(error)[name] for name in TOLD if vars(error).get(name)}
    parts = request.path.strip("/").split("/")
    back = f"/runs/{parts[1]}" if parts[0] == "runs" and len(parts) > 2 else ""
    context = {"section": "runs", "heading": heading, "said": str(error), "facts": facts, "back": back}
    return render(request, "refused.html", context, status=status)
