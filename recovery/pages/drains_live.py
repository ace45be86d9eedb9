"""The streams of drains: clock, meter and rows each second, by the server's clock; the rest when its phase changes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.template.loader import render_to_string
from django.views.decorators.http import require_GET

from recovery.drains import Progress, advance_drains, drains_seen, in_force, progress
from recovery.models import Drain
from recovery.pages.drain_panels import Panel, panel_of
from runs.access import DRAIN, Person, agents_of
from runs.pages.live import event, live_answer
from runs.pages.sharing import shared

TICKS = 1.0  # seconds
KEPT = 0.8  # seconds that what was asked of the database serves all who look
PARTS = ("clock", "bar", "told", "runs")


@require_GET
async def live_drains(request: HttpRequest) -> HttpResponseBase:
    return await live_answer(request, lambda: DrainsPicture(request, None), pause=TICKS, idle=TICKS)


@require_GET
async def live_drain(request: HttpRequest, drain_id: int) -> HttpResponseBase:
    def shows(user: Person) -> bool:
        return drains_seen(user).filter(pk=drain_id).exists()

    picture = partial(DrainsPicture, request, drain_id)
    return await live_answer(request, picture, shows=shows, pause=TICKS, idle=TICKS)


class DrainsPicture:
    """What one browser has of the drains in force, or of the one whose page it shows.

    When one came, ended or was lifted, the panels are drawn anew, and the page is told that history has changed.
    """

    def __init__(self, request: HttpRequest, drain_id: int | None) -> None:
        self._request, self._drain_id = request, drain_id
        self._frame: tuple[Any, ...] | None = None
        self._told: dict[str, str] = {}

    def draw(self) -> str:
        shared.get(("advance drains",), KEPT, advance_drains)
        drains = self.drains()
        panels = [panel_of(told_of(drain, self._request), self._request.user, DRAIN) for drain in drains]
        frame = tuple((one.pk, one.phase, one.deadline_at, one.gate.lifted_at) for one in drains)
        drawn = {target: html for panel in panels for target, html in parts_of(panel).items()}
        changed = {target: html for target, html in drawn.items() if self._told.get(target) != html}
        named = ""
        if frame != self._frame:
            context = {"panels": panels, "alone": self._drain_id is not None}
            changed = {"#drains-live": render_to_string("recovery/_drains_live.html", context, self._request)}
            if self._frame is not None:
                named = "event: drains-changed\ndata: \n\n"
        self._told, self._frame = drawn, frame
        return named + (event(changed) if changed else "")

    def drains(self) -> list[Drain]:
        rows = in_force(self._request.user)
        return list(rows if self._drain_id is None else rows.filter(pk=self._drain_id))


def told_of(drain: Drain, request: HttpRequest) -> Progress:
    """Asked once for all who see the same."""
    key = ("drain", drain.pk, drain.deadline_at, agents_of(request.user))
    return shared.get(key, KEPT, lambda: progress(drain, request.user))


def parts_of(panel: Panel) -> Mapping[str, str]:
    """By target. None of them depends on what the viewer may do."""
    context = {"panel": panel}
    return {
        f"#drain-{panel.drain.pk}-{name}": render_to_string(f"recovery/_drain_{name}.html", context) for name in PARTS
    }
