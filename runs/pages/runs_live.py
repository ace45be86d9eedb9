"""The live list of runs: its rows change in place; new ones are announced and never jump in."""

from __future__ import annotations

from contextlib import suppress
from typing import Any
from uuid import UUID

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.template.loader import render_to_string
from django.views.decorators.http import require_GET

from runs.access import seen_by
from runs.counts import capped_counts
from runs.errors import QueryInvalid
from runs.models import Run
from runs.pages.live import event, live_answer
from runs.pages.rows import rows_of
from runs.pages.run_filter import asked_in
from runs.pages.runs_list import reader_of, verbs_for
from runs.queries import UNLISTED
from runs.query_meaning import runs_meant

MOST_ROWS = 100
MOST_NEWER = 99
LISTED = tuple(name for name in UNLISTED if name != "intents")


@require_GET
async def live_runs(request: HttpRequest) -> HttpResponseBase:
    return await live_answer(request, lambda: ListPicture(request))


class ListPicture:
    """What one browser has of the list. The address names its rows, and the newest run that matched.

    The first picture has all rows: any may have changed since the page was made.
    """

    def __init__(self, request: HttpRequest) -> None:
        self.request = request
        self.rows: dict[UUID, tuple[Any, ...]] = dict.fromkeys(ids_in(request.GET.get("rows", "")), ())
        self.top = next(iter(ids_in(request.GET.get("top", ""))), None)
        self.newer = 0

    def draw(self) -> str:
        partials = self.changed() | self.announced()
        return event(partials) if partials else ""

    def changed(self) -> dict[str, str]:
        runs = seen_by(self.request.user, Run.objects.select_related("release", "session").defer(*LISTED))
        changed = [row for row in rows_of(list(runs.filter(pk__in=self.rows))) if row.told != self.rows[row.run.id]]
        self.rows |= {row.run.id: row.told for row in changed}
        verbs = verbs_for(self.request)
        return {
            f"#run-{row.run.id}": render_to_string("runs/_run_row.html", {"row": row, "verbs": verbs}, self.request)
            for row in changed
        }

    def announced(self) -> dict[str, str]:
        if self.top is None:
            return {}
        try:
            newer = runs_meant(asked_in(self.request.GET).terms, reader_of(self.request)).filter(id__gt=self.top)
        except QueryInvalid:
            return {}
        (count,) = capped_counts([newer], MOST_NEWER)
        if count == self.newer:
            return {}
        self.newer = count
        context = {"newer": count, "most": MOST_NEWER}
        return {"#newer": render_to_string("runs/_newer.html", context, self.request)}


def ids_in(text: str) -> list[UUID]:
    """The run ids in a comma-separated list; what is none is left out."""
    found = []
    for word in text.split(",")[:MOST_ROWS]:
        with suppress(ValueError):
            found.append(UUID(word))
    return found
