"""The stream of one run's page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.http import HttpRequest, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.template.loader import render_to_string
from django.views.decorators.http import require_GET

from runs.models import Run
from runs.pages.asked import whole
from runs.pages.controls import controls_of
from runs.pages.live import HEADERS, event, refused, stream
from runs.pages.run_page import Reading, RunPage
from runs.pages.timeline import ALONE
from runs.short_ids import short_id

PARTIALS = {  # of a run's page, by target; the timeline joins them where it is to be drawn anew
    "#run-head": "_head",
    "#questions": "_questions",
    "#run-facts": "_facts",
    "#outcome": "_outcome",
    "#tree": "_tree",
}


@require_GET
async def live_run(request: HttpRequest, run_id: UUID) -> HttpResponseBase:
    refusal = await refused(request, run_id)
    if refusal is not None:
        return refusal
    seen = whole(request.headers.get("Last-Event-ID")) or whole(request.GET.get("seq")) or 0
    picture = RunPicture(request, run_id, seen, follows="after" not in request.GET)
    return StreamingHttpResponse(stream(picture.draw, run_id), content_type="text/event-stream", headers=HEADERS)


class RunPicture:
    """What one browser has of a run's page. Old windows of a long journal stand still; their head moves."""

    def __init__(self, request: HttpRequest, run_id: UUID, seen: int, follows: bool) -> None:
        self.request = request
        self.seen = seen
        self.follows = follows
        self.reading = Reading(run_id)
        self.told: tuple[Any, ...] = ()

    def draw(self) -> str:
        run = Run.objects.select_related("release", "session").get(pk=self.reading.state.run_id)
        page = self.reading.refresh().page(run)
        lease, around = page.lease, (page.family, page.line.around)
        tells = (page.last_seq, run.status, run.since, run.reason, run.epoch, lease.live, lease.silent, around)
        if tells == self.told:
            return ""
        # The first picture too, where rows show other runs: one may have changed since the page was made.
        moved = page.last_seq != self.seen or bool(self.told) or page.line.around != ALONE
        redraws = self.follows and not page.stateless and moved
        self.told, self.seen = tells, page.last_seq
        return event(self.partials(page, redraws), page.last_seq)

    def partials(self, page: RunPage, redraws: bool) -> Mapping[str, str]:
        context = {
            "page": page,
            "run": page.run,
            "short": short_id(page.run.id),
            "controls": controls_of(page.run, page.state),
        }
        names = PARTIALS | ({"#timeline": "_timeline"} if redraws else {})
        return {target: render_to_string(f"runs/{name}.html", context, self.request) for target, name in names.items()}
