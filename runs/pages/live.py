"""Live pages: one stream a page, of the same partials as in its first render. The journal is read again, never pushed.

An event's id is a seq. A browser that reconnects sends the last one it saw, and gets what came after it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any
from uuid import UUID

from asgiref.sync import sync_to_async
from django.db import connection, connections
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.template.loader import render_to_string
from django.views.decorators.http import require_GET

from journal.feed import listener
from runs.access import VIEW, Person, seen_by
from runs.models import Run
from runs.pages.views import run_filter, stateless_among
from runs.queries import list_runs

LASTS = 300.0  # a stream ends by itself, so that deploys and changed permissions take effect
LOOKS = 5.0  # a lease lapses without a message: look at the row again this often
PINGS = 15.0
MOST_ROWS = 100
SETTLES = 0.2  # what comes in a burst is drawn once
HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}

# Rendering is ordinary blocking code. Two threads for all streams: their connections stay few.
renderers = ThreadPoolExecutor(2, "live")


@require_GET
async def live_runs(request: HttpRequest) -> HttpResponseBase:
    refusal = await refused(request)
    if refusal is not None:
        return refusal
    picture = ListPicture(request)
    return StreamingHttpResponse(stream(picture.draw, None), content_type="text/event-stream", headers=HEADERS)


async def refused(request: HttpRequest, run_id: UUID | None = None) -> HttpResponse | None:
    """None for those who may look at this run (None: at any).

    Gives the request's connection back: a stream would keep it as long as it lasts.
    """
    try:
        user = await request.auser()
        if not user.is_authenticated:
            return HttpResponse(status=401)
        if not await user.ahas_perm(VIEW):
            return HttpResponse(status=403)
        if run_id is not None and not await sync_to_async(may_see)(user, run_id):
            return HttpResponse(status=404)
        return None
    finally:
        await sync_to_async(connections.close_all)()


def may_see(user: Person, run_id: UUID) -> bool:
    return seen_by(user, Run.objects.filter(id=run_id)).exists()


async def stream(draw: Callable[[], str], run_id: UUID | None) -> AsyncIterator[str]:
    """`draw` gives the events to send now, or nothing; it is asked when the run (None: any run) was touched."""
    ends = time.monotonic() + LASTS
    spoke = time.monotonic()
    yield "retry: 1000\n\n"
    async with listener().subscribe(run_id) as touched:
        while time.monotonic() < ends:
            drawn = await asyncio.get_running_loop().run_in_executor(renderers, closing, draw)
            if drawn or time.monotonic() - spoke >= PINGS:
                spoke = time.monotonic()
                yield drawn or ": still here\n\n"
            if await touched.get(LOOKS):
                await asyncio.sleep(SETTLES)


def closing[T](draw: Callable[[], T]) -> T:
    try:
        return draw()
    finally:
        connection.close()


def event(partials: Mapping[str, str], seq: int | None = None) -> str:
    """Server-sent event that swaps each partial over its target."""
    blocks = [
        f'<hx-partial hx-target="{target}" hx-swap="outerMorph">{html}</hx-partial>'
        for target, html in partials.items()
    ]
    lines = "\n".join(blocks).splitlines()
    return ("" if seq is None else f"id: {seq}\n") + "".join(f"data: {line}\n" for line in lines) + "\n"


class ListPicture:
    """What one browser has of the list. Rows change in place; new runs are announced and never jump in.

    The address names the rows on the page. The first picture has them all: any may have changed meanwhile.
    """

    def __init__(self, request: HttpRequest) -> None:
        self.request = request
        self.rows: dict[UUID, tuple[Any, ...]] = dict.fromkeys(ids_in(request.GET.get("rows", "")), ())
        self.announced = False

    def draw(self) -> str:
        runs, _ = list_runs(**run_filter(self.request)[0], user=self.request.user)
        mine = seen_by(self.request.user, Run.objects.select_related("release", "session"))
        shown = mine.filter(pk__in=self.rows)
        changed = [run for run in shown if told(run) != self.rows[run.id]]
        self.rows |= {run.id: told(run) for run in changed}
        stateless = stateless_among(changed)
        partials = {
            f"#run-{run.id}": render_to_string("runs/_run_row.html", {"run": run, "stateless": stateless}, self.request)
            for run in changed
        }
        if not self.announced and any(run.id not in self.rows for run in runs[:1]):
            self.announced = True
            partials["#newer"] = render_to_string("runs/_newer.html", {"newer": True}, self.request)
        return event(partials) if partials else ""


def ids_in(text: str) -> list[UUID]:
    """The run ids in a comma-separated list; what is none is left out."""
    found = []
    for word in text.split(",")[:MOST_ROWS]:
        with suppress(ValueError):
            found.append(UUID(word))
    return found


def told(run: Run) -> tuple[Any, ...]:
    return run.status, run.reason, run.since, run.epoch, run.session_id
