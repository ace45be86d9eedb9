"""A domain error on a page: the words of the error, the status of the one table, and never a traceback."""

from __future__ import annotations

import logging
from typing import Any

from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.deprecation import MiddlewareMixin

from config.errors import API, STATUS_OF

logger = logging.getLogger(__name__)

HEADINGS = {404: "Not found", 410: "Too late: it has expired", 503: "The database does not answer"}
SHOWN = ("actor", "verdict", "at", "run_status", "digest", "candidates")


class RefusedPages(MiddlewareMixin):
    """Beside the API's handlers: the same table, in HTML."""

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        if request.path.startswith(API):
            return None
        if isinstance(error, OperationalError | InterfaceError):
            logger.warning("the database did not answer: %s", error)
            said = "Nothing was written by this request. Runs go on from where they are once the database is back."
            return render(request, "away.html", {"heading": HEADINGS[503], "said": said}, status=503)
        status = next((STATUS_OF[kind] for kind in type(error).__mro__ if kind in STATUS_OF), None)
        if status is None:
            return None
        facts: dict[str, Any] = {name: vars(error)[name] for name in SHOWN if vars(error).get(name)}
        heading = HEADINGS.get(status, "Your answer was not written" if request.method == "POST" else "Not shown")
        context = {"section": "runs", "heading": heading, "said": str(error), "facts": facts, "back": back(request)}
        return render(request, "refused.html", context, status=status)


def back(request: HttpRequest) -> str:
    """The run's page, when the address names a run."""
    parts = request.path.strip("/").split("/")
    return f"/runs/{parts[1]}" if parts[0] == "runs" and len(parts) > 2 else ""
