"""What is around every page: where one may go, what waits for a person, and what is held back just now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection
from django.http import HttpRequest
from django.template.loader import render_to_string

from runs.access import ROLES, SEE_AUDIT, VIEW, Person, agents_of
from runs.models import DOUBT_STANDS_SQL
from runs.pages.conditions import conditions
from runs.pages.sharing import shared
from runs.pages.zones import zone_of

MOST_WAITING = 100  # shown as 99+


@dataclass(frozen=True, slots=True)
class Place:
    """An entry of the navigation."""

    section: str
    path: str
    word: str
    icon: str
    permission: str = VIEW
    letter: str = ""

    @property
    def key(self) -> str:
        """Pressed after `g`: the first letter, where no other place has it."""
        return self.letter or self.section[0]


PLACES = (
    Place("overview", "/", "Overview", "gauge"),
    Place("runs", "/runs", "Runs", "runs"),
    Place("inbox", "/inbox", "Inbox", "inbox"),
    Place("releases", "/releases", "Releases", "tagg", letter="v"),
    Place("drains", "/drains", "Drains", "s-draining"),
    Place("workers", "/workers", "Workers", "server"),
    Place("audit", "/audit", "Audit", "scroll", SEE_AUDIT),
)


def shell(request: HttpRequest) -> dict[str, Any]:
    """Context of every template. Its two queries are made only where it is drawn, and once a request."""
    user: Person | None = getattr(request, "user", None)
    if user is None or not user.is_authenticated:
        return {}
    return {
        "places": lambda: places(user),
        "docked": lambda: docked(user),
        "role": lambda: role_of(user),
        "zone": lambda: str(zone_of(request)),
        "inbox_count": lambda: _once(request, "inbox_count", lambda: inbox_count(user)),
        "conditions": lambda: _once(request, "conditions", lambda: conditions(user)),
    }


def _once(request: HttpRequest, name: str, ask: Any) -> Any:
    kept: dict[str, Any] = request.__dict__.setdefault("_shell", {})
    if name not in kept:
        kept[name] = ask()
    return kept[name]


def places(user: Person) -> Sequence[Place]:
    return [place for place in PLACES if user.has_perm(place.permission)]


def docked(user: Person) -> Sequence[Place]:
    """On a phone: what one reaches for first stands first, the rest under More."""
    order = ("inbox", "runs", "overview")
    return sorted((place for place in places(user) if place.section in order), key=lambda one: order.index(one.section))


def role_of(user: Person) -> str:
    """The role with the most permissions that the user has whole; nothing for one without any."""
    held = user.get_all_permissions()
    whole = [role for role, codes in ROLES.items() if codes <= held]
    return max(whole, key=lambda role: len(ROLES[role]), default="")


# Off the partial index of runs with intents, never the whole table. What waits is what the inbox lists.
WAITING = f"""
SELECT count(*) FROM (
    SELECT 1 FROM runs_run, jsonb_array_elements(intents) AS intent
     WHERE NOT intents = '[]' AND ended_at IS NULL AND (%(agents)s::text[] IS NULL OR agent = ANY (%(agents)s))
       AND (intent ->> 'state' IN ('awaiting_approval', 'asked')
            OR intent ->> 'state' = 'in_doubt' AND status IN ({DOUBT_STANDS_SQL}))
     LIMIT %(most)s
) AS waiting
"""


def inbox_count(user: Person | None) -> int:
    """How much waits for a person among the runs that this one sees; at most MOST_WAITING."""
    agents = agents_of(user)
    given = {"agents": None if agents is None else sorted(agents), "most": MOST_WAITING}
    with connection.cursor() as cursor:
        cursor.execute(WAITING, given)
        return int(cursor.fetchone()[0])


STREAMS_ASK_EVERY = 2.0  # seconds, once for all viewers of the same scope


class ShellPicture:
    """What one browser has of the badge and of the conditions."""

    TARGETS = {"#badge-mast": "mast", "#badge-dock": "dock"}

    def __init__(self, request: HttpRequest) -> None:
        self._request = request
        self._told: tuple[Any, ...] | None = None

    def changed(self) -> Mapping[str, str]:
        """Partials by target. The first picture has them all: the page may be older than the stream."""
        user = self._request.user
        count = shared.get(("inbox", agents_of(user)), STREAMS_ASK_EVERY, lambda: inbox_count(user))
        lines = shared.get(("conditions", agents_of(user)), STREAMS_ASK_EVERY, lambda: conditions(user))
        tells = (count, lines)
        if tells == self._told:
            return {}
        self._told = tells
        given = {"inbox_count": count, "conditions": lines}
        badges = {
            target: render_to_string("_inbox_badge.html", given | {"spot": spot})
            for target, spot in self.TARGETS.items()
        }
        return badges | {"#conditions": render_to_string("_conditions.html", given)}
