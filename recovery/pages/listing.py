"""The inbox: what waits, in groups, beside the one thing that is looked at. The address holds what is shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.views.decorators.http import require_GET

from journal.errors import NoSuchRun
from journal.read import read_head
from recovery.inbox import DOUBT, GROUPS, TABS, Counts, Item, Query, count_items, list_items
from recovery.items import ItemPage
from recovery.judging import Judge
from recovery.signers import too_few
from runs.access import VIEW, Person
from runs.errors import IntentNotFound
from runs.models import Release
from runs.queries import find_run
from runs.signed_in import signed_in

LONGEST = 200
MOST_READ = 2_000  # entries of a journal that are read unasked


@dataclass(frozen=True, slots=True)
class Group:
    heading: str
    items: Sequence[Item]
    place: int

    @property
    def doubts(self) -> bool:
        return self.place == DOUBT


@require_GET
@signed_in(VIEW)
def inbox(request: HttpRequest) -> HttpResponseBase:
    context = list_context(request)
    first = first_of(context["items"], request.user)
    if first is not None:
        context |= item_context(request, first) | {"chosen": first.id}
    return render(request, "recovery/inbox.html", context)


def first_of(items: Sequence[Item], user: Person) -> ItemPage | None:
    """What stands beside the list when nothing was chosen: the first, unless its journal is a long one."""
    if not items:
        return None
    run = find_run(str(items[0].run_id), user)
    try:
        return ItemPage(run, items[0].seq) if read_head(None, run.id).last_seq <= MOST_READ else None
    except (IntentNotFound, NoSuchRun):  # a row that its journal does not bear out
        return None


@require_GET
@signed_in(VIEW)
def item(request: HttpRequest, ref: str, seq: int) -> HttpResponseBase:
    page = ItemPage(find_run(ref, request.user), seq)
    if request.headers.get("HX-Request") == "true":
        return render(request, "recovery/_item.html", item_context(request, page))
    context = list_context(request, page) | item_context(request, page) | {"opened": True}
    return render(request, "recovery/inbox.html", context)


def query_of(request: HttpRequest) -> Query:
    """What cannot be understood filters nothing."""
    asked = {name: request.GET.get(name, "").strip()[:LONGEST] for name in ("tab", "agent", "tool", "q")}
    tab = asked["tab"] if asked["tab"] in TABS else "all"
    return Query(tab, asked["agent"], asked["tool"], asked["q"])


def address_of(query: Query) -> str:
    """The query as an address has it: nothing for what is shown without one."""
    named = {"tab": "" if query.tab == "all" else query.tab, "agent": query.agent, "tool": query.tool, "q": query.text}
    said = urlencode({name: value for name, value in named.items() if value})
    return f"?{said}" if said else ""


def list_context(request: HttpRequest, shown: ItemPage | None = None) -> dict[str, Any]:
    query, user = query_of(request), request.user
    items, cursor = list_items(query, user, request.GET.get("after", ""))
    context = rows_context(query, items, user)
    context["live"] = live_address(request, query, items, shown)
    context |= {"cursor": cursor, "after": request.GET.get("after", ""), "chosen": shown.id if shown else ""}
    context["items"] = items
    return context


def rows_context(query: Query, items: Sequence[Item], user: Person) -> dict[str, Any]:
    """What the list is drawn from."""
    here = address_of(query)
    counts = count_items(query, user)
    groups = [
        Group(heading, found, place)
        for place, heading in GROUPS.items()
        if (found := [item for item in items if item.place == place])
    ]
    return {
        "section": "inbox", "query": query, "here": here, "counts": counts, "groups": groups,
        "tabs": tabs_of(query, counts), "probed": probed_among(items),
    }  # fmt: skip


def tabs_of(query: Query, counts: Counts) -> list[tuple[str, str, int, str]]:
    """Name, word, count and address of each tab, under the same filters."""
    return [
        (name, word, counts.tabs.get(name, 0), address_of(replace(query, tab=name))) for name, (word, _) in TABS.items()
    ]


def live_address(request: HttpRequest, query: Query, items: Sequence[Item], shown: ItemPage | None) -> str:
    """Of the stream: it is told which rows are on the page, and which item stands beside them."""
    rows = {"rows": ",".join(item.id for item in items), "item": shown.id if shown else ""}
    rows["after"] = "1" if request.GET.get("after") else ""
    said = urlencode({name: value for name, value in rows.items() if value})
    return f"/live/inbox{address_of(query) or '?'}{'&' if address_of(query) else ''}{said}"


def probed_among(items: Sequence[Item]) -> set[str]:
    """The ids of those in doubt whose tool can be asked by key."""
    doubts = [item for item in items if item.place == DOUBT]
    contents = Release.objects.filter(id__in={item.release_id for item in doubts}).values_list("id", "content")
    asked = {(id, tool["name"]) for id, content in contents for tool in content.get("tools", []) if tool.get("probe")}
    return {item.id for item in doubts if (item.release_id, item.tool) in asked}


def item_context(request: HttpRequest, page: ItemPage) -> dict[str, Any]:
    return {
        "section": "inbox", "page": page, "run": page.run, "slot": page.slot, "short": page.short,
        "judge": Judge(page, request.user), "too_few": too_few(page), "here": address_of(query_of(request)),
    }  # fmt: skip
