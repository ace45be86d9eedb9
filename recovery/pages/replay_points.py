"""A replay as its page draws it: what differs, what was not reached, a cell for each entry. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

from journal.entries import Entry, Kind
from runs.pages.summaries import summary
from runs.pages.text_diff import TextDiff, text_diff
from runs.secrets import STRUCK
from runs.values import readable

# In the order of loudness, but for the last.
SAME, TEXT, DIVERGES, SKIPPED = LOOKS = ("same", "text", "diverge", "skip")
MOST_CELLS = 160
MOST_SKIPPED = 30  # entries that were not reached and are listed
# What a divergence of this kind is called in the list.
WORDS = {
    "decision": "Diverges",
    "arguments": "Other arguments",
    "gate": "Approval differs",
    "end": "Ends otherwise",
    "missing_tool": "Tool is gone",
    "refused_arguments": "Arguments refused",
    "text": "Text only",
}
TELLING = (Kind.PLAN, Kind.TOOL_CALL, Kind.ASK, Kind.TIMER, Kind.CHILD, Kind.DONE)  # what a replay decides
MOVES = ("call", "spawn", "ask", "wait_for", "sleep", "until", "finish", "fail")
MODEL = "model"  # `what` of an answer that it gave when it was asked again
SEALED = ("sealed", "secret")


@dataclass(frozen=True, slots=True)
class Point:
    """A row of the list. `found` is the divergence as the result has it, None where the replay did not come so far."""

    seq: int
    kind: str
    title: str
    look: str
    word: str
    says: str
    found: Mapping[str, Any] | None = None
    what: str = ""  # its kind, which tells two at one entry apart


@dataclass(frozen=True, slots=True)
class Cell:
    """A bar of the strip; `x` and `width` in percent."""

    x: float
    width: float
    look: str


def points_of(result: Mapping[str, Any], entries: Sequence[Entry]) -> list[Point]:
    """By seq: the divergences, then the decisions that were not reached, the first few."""
    found = [point_of(one, entries) for one in result["divergences"]]
    found += [asked_again(one, entries) for one in (result["model"] or {}).get("divergences", ())]
    found.sort(key=lambda point: point.seq)
    stopped = result["stopped_at"]
    if stopped is None:
        return found
    told = {point.seq for point in found}
    behind = [e for e in entries if e.seq >= stopped and e.kind in TELLING and e.seq not in told]
    why = f"stopped at seq {stopped}: {result['stopped_why']}"
    return found + [Point(e.seq, e.kind, title_of(e), SKIPPED, "Not reached", why) for e in behind[:MOST_SKIPPED]]


def point_of(one: Mapping[str, Any], entries: Sequence[Entry]) -> Point:
    seq, kind, effect = one["seq"], one["kind"], one["effect"]
    entry = entries[seq - 1] if 0 < seq <= len(entries) else None
    return Point(
        seq,
        entry.kind if entry is not None else "DONE",
        title_of(entry) if entry is not None else "End",
        DIVERGES if effect else TEXT,
        WORDS.get(kind, "Diverges"),
        one["says"],
        one,
        kind,
    )


def asked_again(one: Mapping[str, Any], entries: Sequence[Entry]) -> Point:
    """What the model said otherwise when it was asked again: that it differs is in its nature."""
    return replace(point_of(one, entries), look=TEXT, word="Model says otherwise", what=MODEL)


def title_of(entry: Entry) -> str:
    """The tool of a call, what a plan thought, the name of a child; else the entry in a line."""
    body = entry.body
    named = body.get("tool") or body.get("agent") or body.get("thought")
    return str(named) if named and entry.kind != Kind.START else summary(entry)


def cells_of(result: Mapping[str, Any], last: int) -> list[Cell]:
    """A bar an entry, or one for some entries of a long journal: the loudest of them."""
    looks = [SAME] * last
    stopped = result["stopped_at"]
    if stopped is not None:
        looks[stopped - 1 :] = [SKIPPED] * max(last - stopped + 1, 0)
    for one in divergences_of(result):
        if 0 < (seq := one["seq"]) <= last and looks[seq - 1] != DIVERGES:
            looks[seq - 1] = DIVERGES if one["effect"] else TEXT
    each = max(ceil(last / MOST_CELLS), 1)
    groups = [looks[at : at + each] for at in range(0, last, each)]
    width = 100 / max(len(groups), 1)
    gap = min(width * 0.12, 0.3)
    return [Cell(round(n * width, 3), round(width - gap, 3), loudest(group)) for n, group in enumerate(groups)]


def divergences_of(result: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """With a model's other answers, which count for words."""
    again = (result["model"] or {}).get("divergences", ())
    return [*result["divergences"], *({**one, "effect": False} for one in again)]


def loudest(looks: Sequence[str]) -> str:
    if all(look == SKIPPED for look in looks):
        return SKIPPED
    return max((look for look in looks if look != SKIPPED), key=LOOKS.index)


def strip_says(result: Mapping[str, Any], last: int) -> str:
    """The strip in a sentence."""
    found = divergences_of(result)
    effect = unique(str(one["seq"]) for one in found if one["effect"])
    text = unique(str(one["seq"]) for one in found if not one["effect"])
    said = [f"{listed(text)} differ{'s' if len(text) == 1 else ''} in text"] if text else []
    said += [f"{listed(effect)} diverge{'s' if len(effect) == 1 else ''}"] if effect else []
    stopped = result["stopped_at"]
    first = stopped + (str(stopped) in [*effect, *text]) if stopped is not None else last + 1
    if first <= last:
        said.append(f"{first} to {last} not reached" if first < last else f"{last} not reached")
    return f"Entries 1 to {last}: {', '.join([*said, 'the rest identical' if said else 'identical'])}."


def unique(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(texts))


def listed(seqs: Sequence[str], most: int = 12) -> str:
    shown = list(seqs[:most]) + ([f"{len(seqs) - most} more"] if len(seqs) > most else [])
    return " and ".join([", ".join(shown[:-1]), shown[-1]]) if len(shown) > 1 else shown[0]


def diff_of(one: Mapping[str, Any], *, changes_only: bool) -> TextDiff:
    """Both moves as lines of JSON, a text as its own lines."""
    return text_diff(written(one.get("recorded")), written(one.get("attempted")), changes_only=changes_only)


def written(value: Any) -> str:
    """A move as people read it. Nothing sealed gets through, whatever the result holds."""
    if value is None:
        return ""
    if isinstance(value, str):
        return readable(value)
    if isinstance(value, Mapping) and value.keys() == {"thought"} and isinstance(value["thought"], str):
        return readable(value["thought"])
    alone = value[0] if isinstance(value, list) and len(value) == 1 else value
    return readable(json.dumps(struck(in_order(alone)), indent=2, ensure_ascii=False, default=str))


def in_order(value: Any) -> Any:
    """What is done stands first, then with what: the database forgets the order of names."""
    if isinstance(value, list):
        return [in_order(move) for move in value]
    if not isinstance(value, Mapping):
        return value
    first = next((name for name in MOVES if name in value), None)
    return value if first is None else {first: value[first]} | dict(value)


def struck(value: Any) -> Any:
    if isinstance(value, Mapping):
        if value.get("$") in SEALED:
            return STRUCK
        return {name: struck(part) for name, part in value.items()}
    return [struck(part) for part in value] if isinstance(value, list | tuple) else value
