"""Live pages: one stream a page, of the same partials as in its first render. The journal is read again, never pushed.

An event's id is a seq. A browser that reconnects sends the last one it saw, and gets what came after it. Nothing holds
a database connection between events. Above a number of open streams further pages get one picture and ask again.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Protocol
from uuid import UUID

from django.conf import settings
from django.db import DatabaseError, connection
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.views.decorators.http import require_GET

from journal.feed import Subscription, listener
from runs.access import VIEW, Person, seen_by
from runs.models import Run
from runs.pages.pulse import Watch, pulse
from runs.pages.shell import ShellPicture
from runs.pages.silent_peers import drop_silent_peers
from runs.pages.viewers import Viewer, standings

LASTS = 300.0  # a stream ends by itself, so that deploys take effect
IDLE = 30.0  # seconds after which a page is looked at again though nothing told that it changed
PINGS = 15.0
MOST_ROWS = 100
SETTLES = 0.2  # what comes in a burst is drawn once
SLOWEST = 10.0
SHARE = 0.3  # of one processor's time, at most, goes into drawing for streams: the rest is for pages
HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}

# Rendering is ordinary blocking code. Two threads for all streams: their connections stay few.
renderers = ThreadPoolExecutor(2, "live")
# In which streams ask who is there: hundreds come back at once after a restart, and wait in a line of their own. Each
# thread gives its connection back itself, also when the browser has left in the middle of the look-up.
heads = ThreadPoolExecutor(2, "heads")
log = logging.getLogger("holdfast.live")


Shows = Callable[[Person], bool]


class Picture(Protocol):
    """What one browser has of a page."""

    def draw(self) -> str:
        """The events to send now, or nothing."""


async def live_answer(
    request: HttpRequest,
    make: Callable[[], Picture],
    run_id: UUID | None = None,
    *,
    shows: Shows | None = None,
    pause: float = SETTLES,
    idle: float = IDLE,
) -> HttpResponseBase:
    """The stream of a page, for whoever may see it; `make` is called once and asks the database nothing. `shows`: of
    a page about one thing that is no run, whether it is there for this person.

    It is drawn when the run (None: any run) was touched, at most every `pause` and at least every `idle` seconds. The
    badge of the inbox and the conditions come with it.
    """
    viewer = Viewer(0, None)
    refusal = await refused(request, run_id, shows, viewer)
    if refusal is not None:
        return refusal
    drop_silent_peers()
    picture = make()
    watching = pulse(renderers, closing)
    full = len(watching.open) >= settings.HOLDFAST_STREAMS
    drawing = Drawing(request, picture)
    body = once(drawing) if full else stream(drawing.draw, run_id, viewer, pause, idle)
    return StreamingHttpResponse(body, content_type="text/event-stream", headers=HEADERS)


class Drawing:
    """The page's own picture, and that of the shell around it."""

    def __init__(self, request: HttpRequest, picture: Picture) -> None:
        self._picture, self._shell = picture, ShellPicture(request)

    def draw(self) -> str:
        drawn, partials = self._picture.draw(), self._shell.changed()
        return drawn + (event(partials) if partials else "")


async def refused(
    request: HttpRequest, run_id: UUID | None, shows: Shows | None, viewer: Viewer
) -> HttpResponse | None:
    """None for those who may look at this run (None: at any), with `viewer` filled in."""
    ask = partial(refusal_of, request, run_id, shows, viewer)
    return await asyncio.get_running_loop().run_in_executor(heads, closing, ask)


def refusal_of(request: HttpRequest, run_id: UUID | None, shows: Shows | None, viewer: Viewer) -> HttpResponse | None:
    user = request.user
    if not user.is_authenticated:
        return HttpResponse(status=401)
    viewer.user_id, viewer.session_key = user.pk, request.session.session_key
    viewer.standing = standings([user.pk]).get(user.pk, "")
    if not user.has_perm(VIEW):
        return HttpResponse(status=403)
    hidden = (run_id is not None and not may_see(user, run_id)) or (shows is not None and not shows(user))
    return HttpResponse(status=404) if hidden else None


def may_see(user: Person, run_id: UUID) -> bool:
    return seen_by(user, Run.objects.filter(id=run_id)).exists()


class Pace:
    """How far apart two drawings of a stream have to be, so that all streams together leave the pages their time."""

    def __init__(self) -> None:
        self._seconds = 0.0  # a drawing, on average of the last ones

    def took(self, seconds: float) -> None:
        self._seconds += 0.05 * (seconds - self._seconds)

    def gap(self, streams: int) -> float:
        return min(streams * self._seconds / SHARE, SLOWEST)


pace = Pace()


async def stream(
    draw: Callable[[], str], run_id: UUID | None, viewer: Viewer, pause: float, idle: float
) -> AsyncIterator[str]:
    """Events until the viewer leaves, may look no more, or some minutes are over."""
    ends = time.monotonic() + LASTS
    spoke = time.monotonic()
    watching = pulse(renderers, closing)
    yield mode("live", 1000)
    async with listener().subscribe(run_id) as touched:
        watch = Watch(run_id, touched, viewer)
        watching.add(watch)
        try:
            while time.monotonic() < ends and not viewer.gone:
                began = time.monotonic()
                drawn = await asyncio.get_running_loop().run_in_executor(renderers, timed, draw)
                if drawn or time.monotonic() - spoke >= PINGS:
                    spoke = time.monotonic()
                    yield drawn or ": still here\n\n"
                async for ping in quiet(touched, spoke, min(ends, time.monotonic() + idle)):
                    spoke = time.monotonic()
                    yield ping
                wait = max(pause, pace.gap(len(watching.open))) - (time.monotonic() - began)
                await asyncio.sleep(max(wait, SETTLES))
        except DatabaseError as error:  # the browser comes again, and is told by the page's own answer
            log.warning("a stream ended: %s", error)
        finally:
            watching.remove(watch)


async def quiet(touched: Subscription, spoke: float, ends: float) -> AsyncIterator[str]:
    """Until something was touched, or until then; with a sign of life now and then."""
    while (now := time.monotonic()) < ends:
        if await touched.get(min(ends - now, max(spoke + PINGS - now, 0.05))):
            return
        if time.monotonic() - spoke >= PINGS:
            spoke = time.monotonic()
            yield ": still here\n\n"


async def once(drawing: Drawing) -> AsyncIterator[str]:
    """One picture, and word to come again: there are as many streams as this process keeps."""
    yield mode("polling", POLLS)
    with suppress(DatabaseError):
        yield await asyncio.get_running_loop().run_in_executor(renderers, timed, drawing.draw)


POLLS = 10_000  # milliseconds


def mode(word: str, retry: int) -> str:
    """How the page is kept fresh, which it says at `#live`, and after how many milliseconds it asks again."""
    return f"event: hf:mode\nretry: {retry}\ndata: {word} {retry // 1000}\n\n"


def timed(draw: Callable[[], str]) -> str:
    began = time.monotonic()
    try:
        return closing(draw)
    finally:
        pace.took(time.monotonic() - began)


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


@require_GET
async def live_shell(request: HttpRequest) -> HttpResponseBase:
    """For pages that change by nothing but what is around them."""
    return await live_answer(request, Nothing)


class Nothing:
    def draw(self) -> str:
        return ""
