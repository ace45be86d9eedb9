"""What may be written in the query field next: keys, and the values that there are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

from django.db import connection

from runs.access import Person, agents_of, seen_by
from runs.models import Run
from runs.pages.facets import agents_known, regions_known, releases_run
from runs.pages.sharing import shared
from runs.query_language import HAS, KEYS, STATUS_WORDS, completing, quoted

MOST = 12
RECENT = 500  # runs whose labels are offered
KEPT = 10.0  # seconds
EXAMPLES = {
    "epoch": (">1", ">3"), "cost": (">1", ">0.10"), "tokens": (">10000", ">100000"), "age": (">1h", "<24h", ">7d"),
    "ended": ("<24h", "<1h"), "started": ("today", "yesterday"),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Suggestion:
    """`insert` goes in place of the characters from `start` to `end`; `whole` is the text with it."""

    insert: str
    hint: str
    start: int
    end: int
    whole: str
    caret: int


def suggestions(text: str, caret: int, user: Person) -> list[Suggestion]:
    at = completing(text, caret)
    if not at.key:
        found = [(f"{key}:", rule.hint) for key, rule in KEYS.items() if key.startswith(at.begun)]
    elif at.key == "label" and not at.name:
        found = [(f"{quoted(name)}:", "") for name in begun_so({name for name, _ in labels_known(user)}, at.begun)]
    else:
        words = (value for name, value in labels_known(user) if name == at.name) if at.key == "label" else None
        values = VALUES.get(at.key, nothing)(user) if words is None else words
        hints = HAS if at.key == "has" else {}
        found = [(f"{quoted(value)} ", hints.get(value, "")) for value in begun_so(values, at.begun)]
    return [made(text, insert, hint, at.start, at.end) for insert, hint in islice(found, MOST)]


def made(text: str, insert: str, hint: str, start: int, end: int) -> Suggestion:
    return Suggestion(insert, hint, start, end, text[:start] + insert + text[end:].lstrip(), start + len(insert))


def begun_so(values: Iterable[str], begun: str) -> list[str]:
    """Those that begin with it first, then those that have it inside."""
    low = begun.lower()
    found = [value for value in dict.fromkeys(values) if low in value.lower()]
    return sorted(found, key=lambda value: not value.lower().startswith(low))


# -- values ------------------------------------------------------------------------------------------------------------


def nothing(user: Person) -> Sequence[str]:
    return ()


def tools_known(user: Person) -> Sequence[str]:
    """Of the contracts of all releases."""
    within = agents_of(user)
    tools = shared.get("tools of releases", KEPT, read_tools)
    return [tool for agent, tool in tools if within is None or agent in within]


TOOLS = """
SELECT DISTINCT r.agent, tool ->> 'name' FROM runs_release r, jsonb_array_elements(r.content -> 'tools') AS tool
 WHERE jsonb_typeof(r.content -> 'tools') = 'array' ORDER BY 2 LIMIT 1000
"""


def read_tools() -> list[tuple[str, str]]:
    with connection.cursor() as cursor:
        cursor.execute(TOOLS)
        return [(agent, tool) for agent, tool in cursor.fetchall() if tool]


def labels_known(user: Person) -> list[tuple[str, str]]:
    """Of the newest runs: names with their values."""
    newest = seen_by(user, Run.objects.order_by("-id")).values_list("labels", flat=True)[:RECENT]
    return sorted({(str(name), str(value)) for labels in newest for name, value in labels.items()})


VALUES: dict[str, Callable[[Person], Iterable[str]]] = {
    "status": lambda user: STATUS_WORDS,
    "has": lambda user: HAS,
    "agent": agents_known,
    "release": lambda user: [str(release) for release in releases_run(user)],
    "tool": tools_known,
    "at": tools_known,
    "region": lambda user: regions_known(),
    **{key: (lambda user, words=words: words) for key, words in EXAMPLES.items()},  # type: ignore[misc]
}
