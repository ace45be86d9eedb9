"""Two releases beside each other: what differs, field by field, texts by line, tools by parameter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.views.decorators.http import require_GET

from runs.access import VIEW, Person, seen_by
from runs.errors import ReleaseNotFound
from runs.fleet import servers
from runs.models import Release
from runs.pages.facts import digest_of, model_of, prompt_of
from runs.pages.release_acts import release_seen
from runs.pages.text_diff import TextDiff, text_diff
from runs.releases_compared import Diff, TextChange, ToolChange, diff
from runs.signed_in import signed_in

SHORT = 8  # digits of a digest, which people compare


@dataclass(frozen=True, slots=True)
class Summary:
    """A line of what is the same and what is not, None where nobody knows: `told` is the value, or what changed, with
    the first digits of digests. `whole`: those digests."""

    name: str
    same: bool | None
    told: str
    whole: str = ""


@dataclass(frozen=True, slots=True)
class Text:
    """A text of both, line beside line."""

    change: TextChange
    lines: TextDiff


@dataclass(frozen=True, slots=True)
class Tool:
    change: ToolChange
    texts: Sequence[Text]


@dataclass(frozen=True, slots=True)
class Compared:
    before: Release
    after: Release
    diff: Diff
    summary: Sequence[Summary]
    texts: Sequence[Text]
    tools: Sequence[Tool]


@require_GET
@signed_in(VIEW)
def release_diff(request: HttpRequest) -> HttpResponseBase:
    """Without two releases named it asks for them; what is named and not there is said."""
    named = {side: request.GET.get(side, "").strip() for side in ("from", "to")}
    found, missing = {}, []
    for side, ref in named.items():
        try:
            found[side] = release_seen(ref, request.user) if ref else None
        except ReleaseNotFound:
            missing.append(ref)
    before, after = found.get("from"), found.get("to")
    context: dict[str, Any] = {
        "section": "releases", "choices": choices(request.user), "named": named, "missing": missing,
        "before": before, "after": after, "compared": compare(before, after) if before and after else None,
    }  # fmt: skip
    return render(request, "runs/release_diff.html", context, status=404 if missing else 200)


def choices(user: Person) -> list[Release]:
    rows = Release.objects.defer("content", "declared").order_by("agent", "-created_at", "id")
    return list(seen_by(user, rows))


def compare(before: Release, after: Release) -> Compared:
    found = diff(before.contract, after.contract)
    tools = [Tool(tool, beside(tool.texts)) for tool in found.tools]
    return Compared(before, after, found, summary_of(before, after, found), beside(found.texts), tools)


def beside(texts: Sequence[TextChange]) -> list[Text]:
    return [Text(text, text_diff(text.before, text.after, changes_only=True)) for text in texts]


def summary_of(before: Release, after: Release, found: Diff) -> list[Summary]:
    others = [change.place for change in (*found.fields, *found.input) if not change.place.startswith("model")]
    return [
        model_line(before, after, found),
        prompt_line(after, found),
        tools_line(after, found),
        Summary("Input and bounds", not others, ", ".join(others) or "the same"),
        code_line(before, after),
    ]


def model_line(before: Release, after: Release, found: Diff) -> Summary:
    old, new = (model_of(release.content) or "none" for release in (before, after))
    places = [*(change.place for change in found.fields), *(text.place for text in found.texts)]
    settings = [p.removeprefix("model.") for p in places if p.startswith("model") and not is_prompt(p)]
    return Summary("Model", not settings, f"{old} to {new}" if old != new else ", ".join([new, *settings]))


def prompt_line(after: Release, found: Diff) -> Summary:
    prompts = [text for text in found.texts if is_prompt(text.place)]
    if not prompts:
        return same("Prompt", digest_of(prompt_of(after.content)))
    added, removed = sum(text.added for text in prompts), sum(text.removed for text in prompts)
    return Summary("Prompt", False, f"{added} line{'s' * (added != 1)} new, {removed} gone")


def tools_line(after: Release, found: Diff) -> Summary:
    if not found.tools:
        return same("Tools", digest_of(after.content.get("tools")))
    return Summary("Tools", False, ", ".join(f"{tool.tool} {tool.kind}" for tool in found.tools))


def is_prompt(place: str) -> bool:
    return place.rpartition(".")[2] == "prompt"


def same(name: str, digest: str) -> Summary:
    return Summary(name, True, digest[:SHORT] or "none", digest)


def code_line(before: Release, after: Release) -> Summary:
    """Of the live workers that serve them."""
    serving = servers()
    old, new = (sorted({one.code for one in serving.get(release.id, ()) if one.code}) for release in (before, after))
    if not (old and new):
        missing = [str(release) for release, codes in ((before, old), (after, new)) if not codes]
        return Summary("Code", None, f"no live worker serves {' or '.join(missing)}")
    sides = [old] if old == new else [old, new]
    told, whole = (" to ".join(" and ".join(c[:end] for c in codes) for codes in sides) for end in (SHORT, None))
    return Summary("Code", old == new, told, whole)
