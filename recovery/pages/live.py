"""The inbox's stream. Rows change in place, new ones are announced, and nothing moves under the pointer."""

from __future__ import annotations

from contextlib import suppress
from typing import Any
from uuid import UUID

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.template.loader import render_to_string
from django.views.decorators.http import require_GET

from journal.read import read_head
from recovery.inbox import PAGE, Counts, Item, count_items, items_of, list_items
from recovery.pages.listing import address_of, probed_among, query_of, tabs_of
from runs.pages.live import event, live_answer

PAUSE = 1.0  # seconds between two pictures: a list that waits for people need not be quicker


@require_GET
async def live_inbox(request: HttpRequest) -> HttpResponseBase:
    return await live_answer(request, lambda: InboxPicture(request), pause=PAUSE)


class InboxPicture:
    """What one browser has of the inbox: the rows that its address names, and the item beside them.

    The item is not sent: a named event, after its row's id, makes it ask for itself.
    """

    def __init__(self, request: HttpRequest) -> None:
        self.request, self.query = request, query_of(request)
        self.rows: dict[str, tuple[Any, ...]] = dict.fromkeys(ids_in(request.GET.get("rows", "")), ())
        self.item = next(iter(ids_in(request.GET.get("item", ""))), "")
        self.first_page = not request.GET.get("after")
        self.counts: Counts | None = None
        self.seqs: dict[UUID, int] = {}
        self.announced = 0

    def draw(self) -> str:
        partials, touched = self.changes()
        return "".join(f"event: item-{id}\ndata: \n\n" for id in touched) + (event(partials) if partials else "")

    def changes(self) -> tuple[dict[str, str], list[str]]:
        user = self.request.user
        found = items_of([run_of(id) for id in self.rows], user)
        partials: dict[str, str] = {}
        changed: list[str] = []
        for id, was in self.rows.items():
            now = found[id].told if id in found else ("gone",)
            if now != was:
                self.rows[id] = now
                partials[f"#i-{id}"] = self.row(id, found.get(id))
                changed += [id] if was else []
        counts = count_items(self.query, user)
        if counts != self.counts:
            context = {"tabs": tabs_of(self.query, counts), "query": self.query, "counts": counts}
            partials["#inbox-tabs"] = render_to_string("recovery/_tabs.html", context, self.request)
            partials["#inbox-sum"] = render_to_string("recovery/_sum.html", context, self.request)
            self.counts = counts
        if self.first_page and (newer := self.newer()) != self.announced:
            self.announced = newer
            context = {"newer": newer, "here": address_of(self.query)}
            partials["#inbox-newer"] = render_to_string("recovery/_newer.html", context, self.request)
        return partials, changed + self.moved(changed)

    def row(self, id: str, item: Item | None) -> str:
        if item is None:
            context = {"id": id, "run": run_of(id), "seq": id.partition("-")[2]}
            return render_to_string("recovery/_gone.html", context, self.request)
        context = {
            "item": item, "probed": probed_among([item]), "here": address_of(self.query), "chosen": self.item,
        }  # fmt: skip
        return render_to_string("recovery/_row.html", context, self.request)

    def newer(self) -> int:
        """How many of the first page's are not on this one."""
        items, _ = list_items(self.query, self.request.user, limit=PAGE)
        return sum(item.id not in self.rows for item in items)

    def moved(self, told: list[str]) -> list[str]:
        """The item beside the list, when its run wrote something."""
        if not self.item or self.item in told:
            return []
        run_id = run_of(self.item)
        seq = read_head(None, run_id).last_seq
        known = self.seqs.get(run_id)
        self.seqs[run_id] = seq
        return [self.item] if known is not None and known != seq else []


def ids_in(text: str) -> list[str]:
    """Ids of rows in a comma-separated list; what is none is left out."""
    found = []
    for word in text.split(",")[: 2 * PAGE]:
        with suppress(ValueError):
            run, _, seq = word.partition("-")
            found.append(f"{UUID(run).hex}-{int(seq)}")
    return found


def run_of(id: str) -> UUID:
    return UUID(id.partition("-")[0])
