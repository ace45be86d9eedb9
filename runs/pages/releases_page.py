"""The page of all releases: what is stranded, the matrix, and each canary beside the current release."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.template.loader import render_to_string
from django.views.decorators.http import require_GET

from runs.access import BULK, REPIN, ROLL_BACK, STAGE, VIEW, Person, agents_of
from runs.pages.canary import canaries
from runs.pages.live import event, live_answer
from runs.pages.release_rows import matrix
from runs.pages.sharing import shared
from runs.signed_in import signed_in

KEPT = 1.5  # seconds that one drawing serves all who look
REDRAWN_EVERY = 2.0
ACTS = {"stage": STAGE, "roll_back": ROLL_BACK, "repin": REPIN, "bulk": BULK}
WHOLE = ("#stranded", "#pins", "#canaries")


@require_GET
@signed_in(VIEW)
def releases(request: HttpRequest) -> HttpResponseBase:
    past = request.GET.get("past") == "1"
    return render(request, "runs/releases.html", {"section": "releases", **context_of(request.user, past)})


def context_of(user: Person, past: bool) -> dict[str, Any]:
    found = matrix(user, past=past)
    return {"matrix": found, "past": past, "canaries": canaries(found), "may": may(user)}


def may(user: Person) -> dict[str, bool]:
    return {name: user.has_perm(permission) for name, permission in ACTS.items()}


# -- live --------------------------------------------------------------------------------------------------------------


@require_GET
async def live_releases(request: HttpRequest) -> HttpResponseBase:
    return await live_answer(request, lambda: ReleasesPicture(request), pause=REDRAWN_EVERY, idle=REDRAWN_EVERY)


class ReleasesPicture:
    """What one browser has of the page: rows change in place; the matrix is drawn anew when releases or columns do."""

    def __init__(self, request: HttpRequest) -> None:
        self._request = request
        self._past = request.GET.get("past") == "1"
        self._told: dict[str, str] = {}

    def draw(self) -> str:
        drawn = drawing(self._request.user, self._past)
        changed = {target: html for target, html in drawn.items() if self._told.get(target) != html}
        if shape(self._told) == shape(drawn):
            changed.pop("#pins", None)
        else:
            changed = {target: drawn[target] for target in WHOLE}
        self._told = dict(drawn)
        changed.pop("#shape", None)
        return event(changed) if changed else ""


def shape(drawn: Mapping[str, str]) -> tuple[str, ...]:
    """Which rows there are, in which columns."""
    return (drawn.get("#shape", ""), *(target for target in drawn if target.startswith("#rel-")))


def drawing(user: Person, past: bool) -> Mapping[str, str]:
    """By target, for all who may do the same with the same agents."""
    allowed = may(user)

    def make() -> Mapping[str, str]:
        context = context_of(user, past)
        whole = {to: render_to_string(f"runs/releases/{to[1:]}.html", context) for to in WHOLE}
        rows = {
            f"#rel-{row.release.id}": render_to_string(
                "runs/releases/row.html", context | {"row": row, "first": not place, "agent": agent}
            )
            for agent in context["matrix"].agents
            for place, row in enumerate(agent.rows)
        }
        return whole | rows | {"#shape": str((context["matrix"].columns, context["matrix"].past))}

    return shared.get(("releases", agents_of(user), tuple(allowed.items()), past), KEPT, make)
