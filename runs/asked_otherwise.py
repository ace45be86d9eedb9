"""Whether a model would be asked otherwise under another release: what differs, and from which request on. Pure.

What the model said is recorded, and stands; what it would say to another prompt only asking it would tell.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from journal.entries import Entry, Kind
from runs.releases_compared import in_words

# Of a release's model: what a request is made of. The rest says when one is made, and how long it may take.
OF_A_REQUEST = ("prompt", "settings", "output", "native", "context", "stream", "base_url")
OF_A_TOOL = ("name", "doc", "parameters")  # what a model is told of it


def request_content(content: Mapping[str, Any]) -> dict[str, Any]:
    """As much of a release's content as its requests are made of."""
    model = content.get("model") or {}
    tools = [{name: tool.get(name) for name in OF_A_TOOL} for tool in content.get("tools") or ()]
    asked = {"model": model.get("name")} | {name: model[name] for name in OF_A_REQUEST if name in model}
    if "output" in asked:
        asked["output"] = json.dumps(asked["output"], sort_keys=True)
    return asked | {"tools": tools}


def asked_otherwise(
    now: Mapping[str, Any], now_id: str, then: Mapping[str, Mapping[str, Any]], entries: Sequence[Entry]
) -> tuple[int, str] | None:
    """The first request that would be another under the content `now`, by its seq, and what differs, in words. `then`:
    the contents of releases that the run was pinned to, by id; of one that is not known nothing is said."""
    for seq, release in requests_under(entries):
        if release == now_id or release not in then:
            continue
        was, would_be = request_content(then[release]), request_content(now)
        if was != would_be:
            return seq, in_words(was, would_be)
    return None


def releases_in(entries: Sequence[Entry]) -> set[str]:
    """The ids of the releases that the run was pinned to."""
    return {str(entry.body.get("release", "")) for entry in entries if entry.kind in (Kind.START, Kind.PIN)}


def requests_under(entries: Sequence[Entry]) -> Iterator[tuple[int, str]]:
    """Each request in a conversation, with the release that the run was pinned to."""
    release = ""
    for entry in entries:
        if entry.kind in (Kind.START, Kind.PIN):
            release = str(entry.body.get("release", ""))
        elif entry.kind == Kind.ATTEMPT and entry.step is None and "digest" in entry.body:
            yield entry.seq, release
