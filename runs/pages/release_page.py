"""A release's own page: its stage, who serves it with which code, what still needs it, its content and its history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any

from django.db.models import Q
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.template.loader import render_to_string
from django.utils import timezone
from django.views.decorators.http import require_GET

from runs.access import SEE_AUDIT, VIEW, Person, agents_of
from runs.audit_list import Asked, records
from runs.errors import ReleaseNotFound
from runs.fleet import Rates, rates
from runs.model_names import floating_in
from runs.models import AuditRecord, Release
from runs.pages.agent_page import Parameter, parameters_of
from runs.pages.audit_page import words_of
from runs.pages.facts import model_in, prompt_of, settings_of
from runs.pages.json_lines import pretty
from runs.pages.live import event, live_answer
from runs.pages.release_acts import offers, release_seen, standing_of
from runs.pages.release_rows import Digests, digests_in, matrix
from runs.pages.releases_page import may
from runs.pages.sharing import shared
from runs.policies import ANY_ONE, Policy
from runs.signed_in import signed_in

KEPT = 1.5
REDRAWN_EVERY = 2.0
MOST_RECORDS = 20
RATES_OF = timedelta(days=7)
LIVE = ("head", "needs", "serve", "rates")
BOUNDS = {
    "budget": "Budget of a run", "deadline": "Deadline of a run, seconds", "limit": "In flight at once",
    "unique": "Unique label", "durability": "Durability",
}  # fmt: skip
ASKS = {
    "fallback": "Fallback", "stream": "Streamed", "context": "Context", "native": "Native tools",
    "base_url": "Address", "api_key": "Key", "retries": "Corrections", "attempts": "Attempts",
    "compact_at": "Compact at",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class ToolCard:
    """A tool's contract, as `runs/_tool_contract.html` tells it."""

    contract: Mapping[str, Any]

    @property
    def parameters(self) -> list[Parameter]:
        return parameters_of(self.contract.get("parameters"))

    @property
    def policy(self) -> Policy | None:
        said = self.contract.get("approval")
        return Policy.of(said) if isinstance(said, Mapping) else ANY_ONE if said else None


@dataclass(frozen=True, slots=True)
class Contents:
    """What never changes of a release. `floating`: why its model may be another tomorrow. `settings`: of its model.
    `asks`: how a loop asks it, `bounds`: what it says of its runs, by their words. `output`: the schema of the result;
    `whole`: all of it, as JSON."""

    digests: Digests
    floating: str
    settings: Mapping[str, Any]
    prompt: str
    driver: str
    bounds: Mapping[str, Any]
    tools: Sequence[ToolCard]
    asks: Mapping[str, Any]
    output: Mapping[str, Any] | None
    whole: str

    @property
    def fields(self) -> list[Parameter]:
        """Of the result."""
        return parameters_of(self.output)


@require_GET
@signed_in(VIEW)
def release(request: HttpRequest, named: str) -> HttpResponseBase:
    found, user = release_seen(named, request.user), request.user
    history = history_of(found, user) if user.has_perm(SEE_AUDIT) else None
    context = {"section": "releases", "contents": contents_of(found), "history": history, **live_context(found, user)}
    return render(request, "runs/release.html", context)


def contents_of(release: Release) -> Contents:
    content = release.contract
    tools, model = content.get("tools"), model_in(content)
    return Contents(
        digests=digests_in(release.content),
        floating=floating_in(release.content),
        settings=settings_of(content),
        prompt=prompt_of(content),
        driver=str(content.get("driver") or ""),
        bounds={word: content[name] for name, word in BOUNDS.items() if content.get(name) is not None},
        tools=[ToolCard(tool) for tool in tools] if isinstance(tools, list) else [],
        asks={word: model[name] for name, word in ASKS.items() if model.get(name) not in (None, False, [], {})},
        output=output if isinstance(output := model.get("output"), Mapping) else None,
        whole=pretty(release.content),
    )


def history_of(release: Release, user: Person) -> list[Mapping[str, Any]]:
    """What was done to it, the newest first."""
    rows = records(Asked(), user).filter(agent=release.agent, act__startswith="release.")
    name = str(release)
    about = Q(subject=name) | Q(detail__rolled_back=name) | Q(detail__instead_of=name)
    return [told(row, name) for row in rows.filter(about)[:MOST_RECORDS]]


def told(row: AuditRecord, name: str) -> Mapping[str, Any]:
    """`word` tells what became of this release; `other`: the one that the act was about, where it is another."""
    word, look = words_of(row)
    other = "" if row.subject == name else row.subject
    return {"row": row, "word": word, "look": look, "icon": f"s-{look}", "other": other}


# -- what changes ------------------------------------------------------------------------------------------------------


def live_context(release: Release, user: Person) -> dict[str, Any]:
    """Of the parts that are drawn again while somebody looks. `compare`: the release to lay it beside; None: none."""
    standing = standing_of(release)
    rows = {row.release.id: row for agent in matrix(user, past=True, agent=release.agent).agents for row in agent.rows}
    others = [row.release for row in rows.values() if row.release.id != release.id]
    is_current = standing.current is not None and standing.current.id == release.id
    beside = standing.before if is_current else standing.current
    return {
        "release": release, "row": rows[release.id], "standing": standing, "needs": standing.needs,
        "rates": rates_of(release), "offers": offers(standing, user), "may": may(user),
        "compare": beside or next(iter(others), None),
    }  # fmt: skip


def rates_of(release: Release) -> Rates:
    key = ("release rates", release.id)
    return shared.get(key, 5.0, lambda: rates(release, timezone.now() - RATES_OF))


@require_GET
async def live_release(request: HttpRequest, named: str) -> HttpResponseBase:
    def shows(user: Person) -> bool:
        try:
            release_seen(named, user)
        except ReleaseNotFound:
            return False
        return True

    picture = partial(ReleasePicture, request, named)
    return await live_answer(request, picture, shows=shows, pause=REDRAWN_EVERY, idle=REDRAWN_EVERY)


class ReleasePicture:
    """What one browser has of the page, by part."""

    def __init__(self, request: HttpRequest, named: str) -> None:
        self._request, self._named = request, named
        self._told: dict[str, str] = {}

    def draw(self) -> str:
        try:
            drawn = drawing(self._request.user, self._named)
        except ReleaseNotFound:
            return ""
        changed = {part: html for part, html in drawn.items() if self._told.get(part) != html}
        self._told |= changed
        return event({f"#release-{part}": html for part, html in changed.items()}) if changed else ""


def drawing(user: Person, named: str) -> Mapping[str, str]:
    """By part, for all who may do the same with the same agents."""

    def make() -> Mapping[str, str]:
        context = live_context(release_seen(named, user), user)
        return {part: render_to_string(f"runs/releases/one/{part}.html", context) for part in LIVE}

    allowed = tuple(may(user).items())
    return shared.get(("release", agents_of(user), allowed, named), KEPT, make)
