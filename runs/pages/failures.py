"""What a page says when it cannot do what was asked: what is so, what was kept, and the next step."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable

from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.defaultfilters import filesizeformat
from django.template.loader import render_to_string
from psycopg_pool import PoolTimeout, TooManyRequests

from runs.pages.dialogs import asks_for_dialog

HEADINGS = {404: "Not found", 410: "Too late: it has expired"}
AWAY = 503
TOLD = ("actor", "verdict", "at", "run_status", "digest", "candidates")
BUSY = "All of this console's connections to the database are in use."
GONE = "The database does not answer."

log = logging.getLogger("holdfast.pages")


def refused(request: HttpRequest, error: Exception, status: int) -> HttpResponse:
    """A command said no: in words, with who was first where somebody was. In a dialog, inside of it."""
    if status == AWAY:
        return away(request, error)
    say_no: Callable[[Exception, int], HttpResponse] | None = request.__dict__.get("say_no")
    if say_no is not None:  # the page's own way to say it
        return say_no(error, status)
    heading = HEADINGS.get(status, "Your answer was not written" if request.method == "POST" else "Not shown")
    facts = {name: vars(error)[name] for name in TOLD if vars(error).get(name)}
    parts = request.path.strip("/").split("/")
    back = f"/runs/{parts[1]}" if parts[0] == "runs" and len(parts) > 2 else ""
    context = {"section": "runs", "heading": heading, "said": str(error), "facts": facts, "back": back}
    if asks_for_dialog(request):
        return render(request, "refused.html", context | {"layout": "_dialog.html"}, status=status)
    template = "_refused.html" if request.headers.get("HX-Request") == "true" else "refused.html"
    return render(request, template, context, status=status)


def away(request: HttpRequest, error: Exception) -> HttpResponse:
    """503, without asking the database who is asking. Says which of the two it is."""
    context = {
        "why": BUSY if is_busy(error) else GONE,
        "path": request.get_full_path(),
        "wrote": request.method == "POST",
    }
    headers = {"Retry-After": "2"}
    if request.headers.get("HX-Request") != "true":
        return HttpResponse(render_to_string("away.html", context), status=AWAY, headers=headers)
    if not asks_for_dialog(request):
        return HttpResponse(render_to_string("_away.html", context), status=AWAY, headers=headers)
    if request.method == "POST":  # in front of what was written, which stays
        headers |= {"HX-Retarget": "#dialog .body", "HX-Reswap": "afterbegin"}
        return HttpResponse(render_to_string("_away.html", context), status=AWAY, headers=headers)
    return HttpResponse(render_to_string("_away_dialog.html", context), status=AWAY, headers=headers)


def is_busy(error: BaseException) -> bool:
    """Whether the database answers, and only no connection was free."""
    return any(isinstance(one, PoolTimeout | TooManyRequests) for one in (error, error.__cause__))


def not_understood(request: HttpRequest, exception: Exception) -> HttpResponse:
    """`handler400`: before any page was asked, so without the database."""
    large = isinstance(exception, RequestDataTooBig)
    limit = filesizeformat(settings.DATA_UPLOAD_MAX_MEMORY_SIZE)
    context = {
        "heading": "Too large" if large else "Not understood",
        "said": f"What was sent has more than {limit}." if large else "This console cannot read what was sent.",
    }
    return HttpResponse(render_to_string("400.html", context), status=413 if large else 400)


def failed(request: HttpRequest) -> HttpResponse:
    """`handler500`. The reference is in the log beside the request, so that both can be found."""
    reference = f"hf-{secrets.token_hex(3)}"
    log.error("%s %s failed: reference %s", request.method, request.path, reference)
    return HttpResponse(render_to_string("500.html", {"reference": reference}), status=500)
