"""Every page of the console, in both themes and at every width: axe finds nothing, and none scrolls sideways.

A page without a line in the table here fails. Each is visited once a theme, with something of everything on it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests.pages.axe import faults
from tests.pages.browser import Site
from tests.pages.everything import everything
from tests.security.table import routes

pytestmark = pytest.mark.slow

WIDTHS = (320, 768, 992, 1216, 1920, 390)  # the last is a phone's, where axe looks once more
# What sticks out: elements that nothing around them clips or scrolls.
# Text alone can overflow a box that fits: then its page is named by its width.
WIDER = """() => document.documentElement.scrollWidth <= innerWidth ? [] : [
    `${document.documentElement.scrollWidth} px`, ...[...document.querySelectorAll('body *')]
    .filter((e) => e.getBoundingClientRect().right > innerWidth + 1)
    .map((e) => `${e.tagName}.${e.className.baseVal ?? e.className}`).slice(0, 20)]"""

CONTROL = r"^runs/(?P<ref>[^/]+)/(?P<verb>cancel|hold|resume|release|retry|signal|note)$"
# By route, its addresses; {words} are of tests/pages/everything.py. "who:" before one says who looks, else Max does.
PAGES: dict[str, tuple[str, ...]] = {
    "login": ("nobody:/login?next=/runs",),
    "": ("/", "victor:/"),
    "jump": ("/jump", "/jump?q=order:1", "/jump?q=tenant"),
    "runs": ("/runs", "victor:/runs?q=status:lost", '/runs?q="' + "x" * 200 + '"'),
    "views/save": ("/views/save?status=held",),
    "views/<int:view_id>": ("/views/{view}",),
    "bulk": ("/bulk",),
    "bulk/all": ("/bulk/all",),
    "bulk/order": ("/bulk/order?verb=hold&q=", "/bulk/order?verb=cancel&q=status:queued", "/bulk/order?verb=pin&q="),
    "bulk/<int:bulk_id>": ("/bulk/{bulk}", "/bulk/{judged}"),
    "bulk/<int:bulk_id>/move": ("/bulk/{judged}/move",),
    "runs/<str:ref>": (
        "{incident}", "{incident}?at=9&with=20", "{incident}?seq=12&tab=pointers", "{incident}?axis=seq",
        "{awkward}", "{awkward}?at=8&with=30", "{waiting}", "{waiting}?seq=3", "{acted}", "{fork}?seq=3",
        "{chat}?view=chat", "{awkward}?view=chat", "{waiting}?view=chat", "{incident}?view=chat&seq=4", "{chat}?seq=3",
    ),
    "runs/<str:ref>/journal": ("{incident}/journal", "{awkward}/journal"),
    "runs/<str:ref>/entries/<int:seq>/request": (
        "{chat}/entries/{asked_at}/request", "{chat}/entries/3/request?as=raw", "{chat}/entries/9/request",
    ),
    "runs/<str:ref>/acts": ("{acted}/acts",),
    "runs/<str:ref>/asks/<int:seq>/answer": (
        "{acted}/asks/{form}/answer", "{acted}/asks/{choice}/answer", "{waiting}/asks/3/answer",
    ),
    CONTROL: (
        "{acted}/cancel", "{acted}/hold", "{awkward}/resume", "{awkward}/release", "{awkward}/retry",
        "{waiting}/signal?name=" + "n" * 170, "{acted}/note",
    ),
    "runs/<str:ref>/replay": (
        "{incident}/replay", "{replayed}/replay?release=8", "{replayed}/replay?release=8&seq=9&show=changes",
        "{ordered}/replay?release=8", "victor:{replayed}/replay?release=8&seq=2",
    ),
    "runs/<str:ref>/pin": ("{acted}/pin", "{replayed}/pin", "{incident}/pin"),
    "runs/<str:ref>/fork": ("{incident}/fork?at=17", "{replayed}/fork?at=4", "{replayed}/fork"),
    "runs/<str:ref>/compare": ("{fork}/compare", "{replayed}/compare?show=changes", "{incident}/compare"),
    "workers": ("/workers",),
    "agents": ("/agents",),
    "agents/<path:name>": ("/agents/other", "/agents/refund-desk"),
    "agents/<path:name>/tools/<path:tool>": ("/agents/other/tools/payout", "/agents/refund-desk/tools/refund"),
    "start": ("/start",),
    "agents/<path:name>/start": ("/agents/payer/start",),
    "spending": ("/spending", "victor:/spending?by=tokens&days=7", "/spending?agent=none"),
    "gates": ("/gates",),
    "gates/place": ("/gates/place?scope=tool:mail",),
    "gates/<int:gate_id>/lift": ("/gates/{gate}/lift",),
    "releases": ("/releases", "/releases?past=1", "victor:/releases"),
    "releases/diff": ("/releases/diff", "/releases/diff?from={release}&to={other}", "/releases/diff?from=none"),
    "releases/<str:named>": ("/releases/{release}", "/releases/{canary}", "victor:/releases/{other}"),
    "releases/<str:named>/promote": ("/releases/{canary}/promote",),
    "releases/<str:named>/canary": ("/releases/{canary}/canary",),
    "releases/<str:named>/end-canary": ("/releases/{canary}/end-canary",),
    "releases/<str:named>/rollback": ("/releases/{release}/rollback",),
    "releases/<str:named>/retire": ("/releases/{other}/retire",),
    "inbox": ("/inbox", "/inbox?q=nothing+there"),
    "inbox/settled": ("/inbox/settled",),
    "inbox/<str:ref>/<int:seq>": ("{asked}", "{back}", "{doubt}", "{mail}", "{question}", "victor:{doubt}"),
    "inbox/<str:ref>/<int:seq>/approve": ("{asked}/approve",),
    "inbox/<str:ref>/<int:seq>/reject": ("{asked}/reject",),
    "inbox/<str:ref>/<int:seq>/edit": ("{asked}/edit",),
    "inbox/<str:ref>/<int:seq>/ask": ("{asked}/ask",),
    "inbox/<str:ref>/<int:seq>/reply": ("{back}/reply",),
    "inbox/<str:ref>/<int:seq>/reconcile": ("{doubt}/reconcile", "{mail}/reconcile"),
    "inbox/<str:ref>/<int:seq>/adopt/<int:evidence>": ("{doubt}/adopt/{late}",),
    "drains": ("/drains", "victor:/drains", "/drains?scope=agent:payer"),
    "drains/<int:drain_id>": ("/drains/{drain}", "/drains/{handed}", "victor:/drains/{drain}"),
    "drains/<int:drain_id>/extend": ("/drains/{drain}/extend",),
    "drains/<int:drain_id>/lift": ("/drains/{drain}/lift", "/drains/{handed}/lift"),
    "audit": ("/audit", "victor:/audit"),  # and the page that refuses
}  # fmt: skip
BESIDE = ("/nowhere", "nobody:/nowhere")  # pages of no route
# What answers with no page of its own, and why it has no line above.
NO_PAGE = {
    "healthz": "JSON", "readyz": "JSON", "metrics": "text", "logout": "a redirect",
    "docs/": "the manual: tests/docs looks at it", "docs/<path:page>": "the manual",
    r"^(?!api/|docs/)(?P<there>[^/].*[^/])/$": "a redirect",
    "suggest/runs": "a part of the list", "views/<int:view_id>/delete": "a form is sent to it",
    "releases/<str:named>/pin": "a redirect",
    "drains/preview": "a form is sent to it", "drains/order": "a form is sent to it",
    "bulk/<int:bulk_id>/stop": "a form is sent to it", "runs/<str:ref>/kill-worker": "a form is sent to it",
    "inbox/ask-the-tools": "a form is sent to it",
    "runs/<str:ref>/entries/<int:seq>": "a part of the run's page", "runs/<str:ref>/state": "a part of the run's page",
    "runs/<str:ref>/replay/<int:replay_id>.json": "a download",
    "runs/<str:ref>/journal.jsonl": "a download", "audit/export": "a download",
    "runs/<str:ref>/entries/<int:seq>/payloads/<str:sha256>": "a download",
    "inbox/<str:ref>/<int:seq>/evidence/<str:sha256>": "a download",
    "runs/<str:ref>/intents/<int:seq>/approval": "a redirect",
    "runs/<str:ref>/intents/<int:seq>/reconcile": "a redirect",
}  # fmt: skip
ROOMS = {
    "runs": ("runs", "views/", "bulk", "jump"),
    "one run": ("runs/<str:ref>", "^runs/"),
    "inbox": ("inbox",),
    "agents": ("agents", "start", "gates", "drains", "spending"),
    "releases": ("releases",),
}


def room_of(route: str) -> str:
    """The longest beginning tells; what has none is in the hall."""
    found = [(len(begin), room) for room, begins in ROOMS.items() for begin in begins if route.startswith(begin)]
    return max(found)[1] if found else "hall"


def test_every_page_has_a_line_here() -> None:
    here = {route for route in routes() if not route.startswith("live/")}
    assert sorted(here - PAGES.keys() - NO_PAGE.keys()) == []
    assert sorted((PAGES.keys() | NO_PAGE.keys()) - here) == []


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("room", [*ROOMS, "hall"])
def test_axe_finds_nothing_and_nothing_scrolls_sideways(site: Site, room: str, theme: str) -> None:
    known = everything()
    addresses = [one for route, lines in PAGES.items() if room_of(route) == room for one in lines]
    addresses += BESIDE if room == "hall" else ()
    papers, found = Papers(site, theme), []
    for address in addresses:
        for name, value in known.items():
            address = address.replace(f"{{{name}}}", value)
        found += papers.looked_at(address)
    site.complaints[:] = [said for said in site.complaints if "status of 4" not in said]
    assert not found, "\n".join(found)


class Papers:
    """One page for each person who looks."""

    def __init__(self, site: Site, theme: str) -> None:
        self.site, self.theme, self.pages = site, theme, dict[str, Any]()

    def looked_at(self, address: str) -> list[str]:
        who, _, path = address.rpartition(":/")
        who, path = (who, f"/{path}") if who in ("victor", "nobody") else ("max", address)
        if who not in self.pages:
            self.pages[who] = self.site.open(who, "/healthz", color_scheme=self.theme)
        page = self.pages[who]
        page.set_viewport_size({"width": 1440, "height": 900})
        page.goto(path)
        found = [f"{address} at 1440: {fault}" for fault in faults(page)]
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 844})
            if wide := page.evaluate(WIDER):
                found.append(f"{address} is wider than {width}: {wide}")
        keep_picture(page, f"{who}{path}-{self.theme}")
        return found + [f"{address} at 390: {fault}" for fault in faults(page)]


def keep_picture(page: Any, name: str) -> None:
    if folder := os.environ.get("HOLDFAST_PICTURES"):
        page.screenshot(path=str(Path(folder) / f"{name.replace('/', '_')[:150]}.png"), full_page=True)


def test_every_entry_of_a_run_fits_the_screen(site: Site) -> None:
    """Whatever the inspector shows: by width alone."""
    known = everything()
    page = site.open("max", "/runs")
    for width in (1440, 390):
        page.set_viewport_size({"width": width, "height": 844})
        for place in [f"{known['waiting']}?seq={seq}" for seq in range(2, 10)] + [f"{known['awkward']}?seq=4"]:
            page.goto(place)
            assert page.evaluate(WIDER) == [], f"{place} at {width}"


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_in_what_opens_over_a_page(site: Site, theme: str) -> None:
    known = everything()
    page = site.open("max", "/runs", color_scheme=theme)
    for key, name in (("?", "dlg-keys"), ("/", "dlg-jump")):
        page.goto("/")
        page.keyboard.press(key)
        page.locator(f"#{name}[open]").wait_for()
        assert faults(page) == [], name
    for width in (1440, 390):
        page.set_viewport_size({"width": width, "height": 844})
        page.goto(known["doubt"])
        page.get_by_role("link", name="Say what happened").click()
        page.locator("#dialog[open]").wait_for()
        page.get_by_label("It happened. Record the result").check()
        assert faults(page) == [], width
        page.goto("/runs")
        page.locator("input[name=run]").first.check()
        page.locator("#q").click()
        page.locator("#q-suggest [role=option]").first.wait_for()
        assert faults(page) == [], width


def test_an_empty_console_is_for_everybody_too(site: Site) -> None:
    page = site.open("victor", "/")
    for place in ("/", "/runs", "/inbox", "/inbox/settled", "/workers", "/agents", "/gates", "/bulk"):
        page.goto(place)
        assert faults(page) == [] and page.evaluate(WIDER) == [], place
