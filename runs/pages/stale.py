"""A form whose page is older than the login: it is refused, told in words, and opened again with one press."""

from __future__ import annotations

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.views.decorators.csrf import requires_csrf_token

from runs.pages.dialogs import asks_for_dialog
from runs.refusals import record_refusal
from runs.signed_in import page_of

TYPED = ("reason", "note", "text", "evidence", "value", "result", "payload")


@requires_csrf_token
def stale_form(request: HttpRequest, reason: str = "") -> HttpResponseBase:
    """`CSRF_FAILURE_VIEW`: 403. What was typed is shown, so that nobody has to think of it twice."""
    record_refusal(request, "The form's token was missing or older than the login.")
    in_dialog = asks_for_dialog(request)
    fragment = request.headers.get("HX-Request") == "true" and not in_dialog
    typed = [request.POST[name] for name in TYPED if request.POST.get(name)]
    layout = "_dialog.html" if in_dialog else "_page.html"
    context = {"back": page_of(request), "typed": typed, "layout": layout, "in_dialog": in_dialog}
    return render(request, "_old_tab.html" if fragment else "stale.html", context, status=403)
