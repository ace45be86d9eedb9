"""Who may do what: one line for each route of the site and each operation of the API, and the roles that may.

A route or an operation without a line here fails tests/security/test_every_verb.py.

Where a test has many sides (who, how, where, what is sent) it asks for every pair of them; HOLDFAST_SECURITY=all asks
for every combination.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.urls import URLPattern, URLResolver, get_resolver

from config.api import api

PEOPLE = ("victor", "olga", "ada", "max")
ALL = frozenset(PEOPLE)
OPERATE = frozenset({"olga", "max"})
APPROVE = frozenset({"ada", "max"})
JUDGE = frozenset({"olga", "ada", "max"})  # everybody but the viewer
ADMIN = frozenset({"max"})
PUBLIC = None

WHY = {"reason": "test"}
FULL = os.environ.get("HOLDFAST_SECURITY") == "all"


def in_turn(of: int, *places: int) -> bool:
    """Whether this combination is asked for: with `of` values on the longest side, each pair of two sides is."""
    return FULL or sum(places) % of == 0


@dataclass(frozen=True, slots=True)
class Line:
    """`reads`, `writes`: who may GET and POST it; an empty set: the method does not exist (405). `sends`: a form."""

    reads: frozenset[str] = ALL
    writes: frozenset[str] = frozenset()
    sends: dict[str, Any] | None = None
    address: str = ""  # where the route's own words are not enough


NONE: frozenset[str] = frozenset()

PUBLIC_ROUTES = {
    "healthz", "readyz", "metrics", "login", "logout", "docs/", "docs/<path:page>",
    r"^(?!api/|docs/)(?P<there>[^/].*[^/])/$",
}  # fmt: skip

PAGES: dict[str, Line] = {
    "": Line(),
    "jump": Line(),
    "runs": Line(),
    "suggest/runs": Line(),
    "views/save": Line(JUDGE, JUDGE, {"name": "mine"}),
    "views/<int:view_id>": Line(JUDGE, JUDGE, {"name": "mine"}),
    "views/<int:view_id>/delete": Line(NONE, JUDGE),
    "bulk": Line(),
    "bulk/all": Line(OPERATE),
    "bulk/order": Line(OPERATE, OPERATE, WHY, "bulk/order?verb=cancel"),
    "bulk/<int:bulk_id>": Line(),
    "bulk/<int:bulk_id>/stop": Line(NONE, OPERATE),
    "bulk/<int:bulk_id>/move": Line(OPERATE, OPERATE, WHY),
    "releases/<str:named>/pin": Line(address="releases/refund-desk@7/pin"),
    "runs/<str:ref>": Line(),
    "runs/<str:ref>/entries/<int:seq>": Line(),
    "runs/<str:ref>/state": Line(),
    "runs/<str:ref>/journal": Line(),
    "runs/<str:ref>/journal.jsonl": Line(),
    "runs/<str:ref>/entries/<int:seq>/payloads/<str:sha256>": Line(),
    "runs/<str:ref>/entries/<int:seq>/request": Line(),
    "runs/<str:ref>/acts": Line(),
    "runs/<str:ref>/pin": Line(OPERATE, OPERATE, WHY),
    "runs/<str:ref>/asks/<int:seq>/answer": Line(JUDGE, JUDGE, {"value": "yes"}),
    "runs/<str:ref>/kill-worker": Line(NONE, OPERATE),
    r"^runs/(?P<ref>[^/]+)/(?P<verb>cancel|hold|resume|release|retry|signal|note)$": Line(
        OPERATE, OPERATE, WHY, "runs/{ref}/hold"
    ),
    "workers": Line(),
    "agents": Line(),
    "agents/<path:name>": Line(address="agents/refund-desk"),
    "agents/<path:name>/tools/<path:tool>": Line(address="agents/refund-desk/tools/refund"),
    "start": Line(OPERATE),
    "agents/<path:name>/start": Line(OPERATE, OPERATE, {"input": "1"}, "agents/refund-desk/start"),
    "spending": Line(),
    "gates": Line(),
    "gates/place": Line(OPERATE, OPERATE, {"scope": "tool:refund"} | WHY),
    "gates/<int:gate_id>/lift": Line(OPERATE, OPERATE, WHY),
    "runs/<str:ref>/replay": Line(ALL, OPERATE, {"release": "x"}),
    "runs/<str:ref>/replay/<int:replay_id>.json": Line(),
    "live/replays/<uuid:run_id>": Line(),
    "runs/<str:ref>/fork": Line(OPERATE, OPERATE, {"at": "1"} | WHY),
    "runs/<str:ref>/compare": Line(),
    "inbox": Line(),
    "inbox/settled": Line(),
    "inbox/ask-the-tools": Line(NONE, JUDGE, {"item": "x"}),
    "inbox/<str:ref>/<int:seq>": Line(),
    "inbox/<str:ref>/<int:seq>/approve": Line(APPROVE, APPROVE, {"digest": "0" * 64}),
    "inbox/<str:ref>/<int:seq>/reject": Line(APPROVE, APPROVE, {"digest": "0" * 64, "note": "no"}),
    "inbox/<str:ref>/<int:seq>/edit": Line(APPROVE, APPROVE, {"digest": "0" * 64}),
    "inbox/<str:ref>/<int:seq>/ask": Line(APPROVE, APPROVE, {"digest": "0" * 64, "note": "why?"}),
    "inbox/<str:ref>/<int:seq>/reply": Line(JUDGE, JUDGE, {"text": "so"}),
    "inbox/<str:ref>/<int:seq>/reconcile": Line(JUDGE, JUDGE, {"verdict": "probe", "evidence": "seen"}),
    "inbox/<str:ref>/<int:seq>/adopt/<int:evidence>": Line(JUDGE, JUDGE, WHY),
    "inbox/<str:ref>/<int:seq>/evidence/<str:sha256>": Line(),
    "drains": Line(),
    "drains/preview": Line(NONE, OPERATE, {"kind": "agent", "agent": "refund-desk", "timeout": "60"}),
    "drains/order": Line(NONE, OPERATE, {"kind": "agent", "agent": "refund-desk", "timeout": "60", "sure": "1"} | WHY),
    "drains/<int:drain_id>": Line(),
    "drains/<int:drain_id>/extend": Line(OPERATE, OPERATE, {"seconds": "60"} | WHY),
    "drains/<int:drain_id>/lift": Line(OPERATE, OPERATE, WHY),
    "live/drains": Line(),
    "live/drains/<int:drain_id>": Line(),
    "runs/<str:ref>/intents/<int:seq>/approval": Line(APPROVE, APPROVE, {"verdict": "approve", "digest": "0" * 64}),
    "runs/<str:ref>/intents/<int:seq>/reconcile": Line(JUDGE, JUDGE, {"verdict": "probe", "evidence": "seen"}),
    "releases": Line(),
    "releases/diff": Line(),
    "releases/<str:named>": Line(address="releases/refund-desk@7"),
    "releases/<str:named>/promote": Line(ADMIN, ADMIN, WHY, "releases/refund-desk@7/promote"),
    "releases/<str:named>/canary": Line(ADMIN, ADMIN, {"share": 10} | WHY, "releases/refund-desk@7/canary"),
    "releases/<str:named>/end-canary": Line(OPERATE, OPERATE, WHY, "releases/refund-desk@7/end-canary"),
    "releases/<str:named>/rollback": Line(OPERATE, OPERATE, WHY, "releases/refund-desk@7/rollback"),
    "releases/<str:named>/retire": Line(ADMIN, ADMIN, WHY, "releases/refund-desk@7/retire"),
    "live/releases": Line(),
    "live/releases/<str:named>": Line(address="live/releases/refund-desk@7"),
    "live/shell": Line(),
    "live/overview": Line(),
    "live/workers": Line(),
    "live/bulk/<int:bulk_id>": Line(),
    "live/runs": Line(),
    "live/runs/<uuid:run_id>": Line(),
    "live/inbox": Line(),
    "audit": Line(OPERATE),
    "audit/export": Line(OPERATE),
}

API: dict[tuple[str, str], tuple[frozenset[str], Any]] = {
    ("GET", "/runs"): (ALL, None),
    ("POST", "/runs"): (OPERATE, {"agent": "no-such-agent", "input": 1}),
    ("GET", "/runs/{ref}"): (ALL, None),
    ("GET", "/runs/{ref}/journal"): (ALL, None),
    ("GET", "/runs/{ref}/state"): (ALL, None),
    ("GET", "/runs/{ref}/stream"): (ALL, None),
    ("POST", "/runs/{ref}/cancel"): (OPERATE, WHY),
    ("POST", "/runs/{ref}/hold"): (OPERATE, WHY),
    ("POST", "/runs/{ref}/resume"): (OPERATE, WHY),
    ("POST", "/runs/{ref}/release"): (OPERATE, WHY),
    ("POST", "/runs/{ref}/retry"): (OPERATE, WHY),
    ("POST", "/runs/{ref}/note"): (OPERATE, {"text": "seen"}),
    ("POST", "/runs/{ref}/pin"): (OPERATE, WHY | {"release": "no-such-release"}),
    ("POST", "/runs/{ref}/signal"): (OPERATE, {"name": "paid"}),
    ("POST", "/runs/{ref}/answer"): (JUDGE, {"seq": 2, "value": "yes"}),
    ("POST", "/runs/{ref}/replay"): (OPERATE, {"release": "no-such-release"}),
    ("GET", "/replays/{replay_id}"): (ALL, None),
    ("GET", "/runs/{ref}/fork"): (ALL, None),
    ("POST", "/runs/{ref}/fork"): (OPERATE, {"at": 1} | WHY),
    ("GET", "/intents"): (ALL, None),
    ("POST", "/runs/{ref}/intents/{seq}/approval"): (APPROVE, {"verdict": "approve", "digest": "0" * 64}),
    ("POST", "/runs/{ref}/intents/{seq}/question"): (JUDGE, {"text": "so"}),
    ("POST", "/runs/{ref}/intents/{seq}/reconcile"): (JUDGE, {"verdict": "probe", "evidence": "seen"}),
    ("POST", "/runs/{ref}/intents/{seq}/adopt"): (JUDGE, {"evidence": 7, "reason": "test"}),
    ("GET", "/workers"): (ALL, None),
    ("GET", "/releases"): (ALL, None),
    ("GET", "/spending"): (ALL, None),
    ("GET", "/releases/{release}"): (ALL, None),
    ("GET", "/releases/{release}/needs"): (ALL, None),
    ("GET", "/releases/{release}/rates"): (ALL, None),
    ("GET", "/releases/{release}/diff"): (ALL, None),
    ("POST", "/releases/{release}/promote"): (ADMIN, WHY),
    ("POST", "/releases/{release}/canary"): (ADMIN, WHY | {"share": 10}),
    ("POST", "/releases/{release}/retire"): (ADMIN, WHY),
    ("POST", "/agents/{name}/rollback"): (OPERATE, WHY),
    ("GET", "/agents"): (ALL, None),
    ("GET", "/agents/{name}"): (ALL, None),
    ("GET", "/bulk"): (ALL, None),
    ("POST", "/bulk"): (OPERATE, {"verb": "hold", "query": "", "dry_run": True}),
    ("GET", "/bulk/{bulk_id}"): (ALL, None),
    ("GET", "/bulk/{bulk_id}/items"): (ALL, None),
    ("POST", "/bulk/{bulk_id}/stop"): (OPERATE, {}),
    ("GET", "/gates"): (ALL, None),
    ("POST", "/gates"): (OPERATE, {"scope": "nowhere", "reason": "test"}),
    ("DELETE", "/gates/{gate_id}"): (OPERATE, WHY),
    ("GET", "/drains"): (ALL, None),
    ("POST", "/drains"): (OPERATE, {"scope": "nowhere", "reason": "test"}),
    ("POST", "/drains/preview"): (OPERATE, {"scope": "nowhere"}),
    ("GET", "/drains/{drain_id}"): (ALL, None),
    ("POST", "/drains/{drain_id}/extend"): (OPERATE, {"seconds": 5} | WHY),
    ("DELETE", "/drains/{drain_id}"): (OPERATE, WHY),
}


def routes() -> list[str]:
    """Every address of the site outside the API, as its pattern is written."""
    return [route for route in _walk(get_resolver()) if not route.startswith("api/")]


def _walk(resolver: URLResolver, before: str = "") -> Iterator[str]:
    for each in resolver.url_patterns:
        route = before + str(each.pattern)
        if isinstance(each, URLPattern):
            yield route
        else:
            yield from _walk(each, route)


def operations() -> list[tuple[str, str]]:
    """Every method and path of the API, but the last one, which is for unknown addresses."""
    return [
        (method, path)
        for _, router in api._routers
        for path, view in router.path_operations.items()
        for operation in view.operations
        for method in operation.methods
        if path != "/{path:rest}"
    ]


def address_of(route: str, line: Line, ref: str, run_id: str) -> str:
    """An example of the route that names this run, and nothing else that exists."""
    found = line.address or route
    given = {
        "<str:ref>": ref, "{ref}": ref, "<uuid:run_id>": run_id, "<str:sha256>": "0" * 64, "<int:seq>": "2",
        "<int:view_id>": "7", "<int:bulk_id>": "7", "<int:replay_id>": "7",
        "<int:gate_id>": "7", "<int:drain_id>": "7", "<int:evidence>": "7",
    }  # fmt: skip
    for word, value in given.items():
        found = found.replace(word, value)
    assert "<" not in found, f"{route}: say by `address` how it is called"
    return f"/{found}"
