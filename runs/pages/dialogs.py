"""Acts: each is a page of its own, and a dialog where a link with `hx-target="#dialog"` asked for it.

A template of an act extends base.html and fills the blocks `question` (its title), `under` (a line below it, may be
empty) and `dialog`: a form with a `.body` and a `footer`, which posts to its own address with `hx-target="#dialog"`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render

TARGET = "dialog#dialog"  # as htmx 4 names it in HX-Target


def asks_for_dialog(request: HttpRequest) -> bool:
    return request.headers.get("HX-Request") == "true" and request.headers.get("HX-Target") == TARGET


def dialog_or_page(request: HttpRequest, template: str, context: Mapping[str, Any], status: int = 200) -> HttpResponse:
    """What is inside of the dialog for a link or form of a dialog, else the whole page."""
    in_dialog = asks_for_dialog(request)
    given = {**context, "layout": "_dialog.html" if in_dialog else "_page.html", "in_dialog": in_dialog}
    answer = render(request, template, given, status=status)
    answer.headers["Vary"] = "HX-Request, HX-Target, Cookie"  # a cache must not give one for the other
    return answer


def done(request: HttpRequest, url: str, message: str = "") -> HttpResponse:
    """After the act: on to `url`, with the message on top of it. A dialog's fetch would follow a redirect unseen."""
    if message:
        messages.success(request, message)
    if request.headers.get("HX-Request") == "true":
        return HttpResponse(status=204, headers={"HX-Redirect": url})
    return redirect(url)
