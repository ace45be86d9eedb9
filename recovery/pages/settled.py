"""What does not wait any more: settled by people, by itself, or never answered."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.views.decorators.http import require_GET

from recovery.settled import by_itself, by_people, list_on_record, list_settled
from runs.access import VIEW
from runs.signed_in import signed_in

TABS = {"people": "By people", "itself": "By itself", "nobody": "Never answered"}


@require_GET
@signed_in(VIEW)
def settled(request: HttpRequest) -> HttpResponseBase:
    by = request.GET.get("by", "people")
    by = by if by in TABS else "people"
    after = request.GET.get("after", "")
    context: dict[str, Any] = {"section": "inbox", "by": by, "tabs": TABS.items(), "after": after}
    if by == "nobody":
        context["open"], context["cursor"] = list_on_record(request.user, after)
    else:
        wanted = by_people if by == "people" else by_itself
        context["items"], context["cursor"] = list_settled(wanted, request.user, after)
    return render(request, "recovery/settled.html", context)
