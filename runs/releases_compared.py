"""Two contents of releases compared: field by field, texts by line, tools by parameter. Pure."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

Kind = Literal["added", "removed", "changed"]
Sign = Literal["+", "-", " ", "…"]
CONTEXT = 3  # unchanged lines told around a changed one
DEEPEST = 8  # levels of a schema that are told one by one
LONGEST_TOLD = 5  # places that a sentence names
OUTPUT = "model.output"
APART = ("agent", "version", "tools", "input")  # told elsewhere, or by parts of their own
TEXTS = ("prompt", "doc")  # told by line, however short


@dataclass(frozen=True, slots=True)
class Change:
    """`place`: the field's name, dotted where it lies deeper. `before` and `after` are its values; of a parameter, what
    its schema says of it in words. None on the side where there is none, and `kind` says so."""

    place: str
    kind: Kind
    before: Any
    after: Any


@dataclass(frozen=True, slots=True)
class TextLine:
    """`sign`: `+` new, `-` gone, a space where it stayed; `…` stands for lines that stayed and are not told."""

    sign: Sign
    text: str


@dataclass(frozen=True, slots=True)
class TextChange:
    """A text whose lines changed; "" on the side where there is none. `lines` tells it with some lines around."""

    place: str
    before: str
    after: str
    lines: Sequence[TextLine]

    @property
    def added(self) -> int:
        return sum(line.sign == "+" for line in self.lines)

    @property
    def removed(self) -> int:
        return sum(line.sign == "-" for line in self.lines)


@dataclass(frozen=True, slots=True)
class ToolChange:
    """`kind` is of the tool as a whole. Of a changed one: `parameters` and `returns` by path, `settings` (effect,
    approval, timeout, max_in_flight, key_ttl, retry.attempts, limit.at_once …) by name, `texts`: its description."""

    tool: str
    kind: Kind
    parameters: Sequence[Change] = ()
    returns: Sequence[Change] = ()
    settings: Sequence[Change] = ()
    texts: Sequence[TextChange] = ()

    @property
    def places(self) -> list[str]:
        told = [f"parameter {change.place}" for change in self.parameters] + ["result"] * bool(self.returns)
        return told + [change.place for change in self.settings] + [text.place for text in self.texts]


@dataclass(frozen=True, slots=True)
class Diff:
    """`fields`: driver, model, budget, deadline …, the model's output by path; `input`: of the runs' input, by path;
    `texts`: a prompt, and any other text of several lines; `tools`: those that differ, by name."""

    fields: Sequence[Change]
    input: Sequence[Change]
    texts: Sequence[TextChange]
    tools: Sequence[ToolChange]

    @property
    def same(self) -> bool:
        return not (self.fields or self.input or self.texts or self.tools)


def diff(before: Mapping[str, Any], after: Mapping[str, Any]) -> Diff:
    """Of two contents, as `Release.content` (or `.contract`, for the declared order of fields) holds them."""
    (old, was), (new, now) = _without_output(_without(before, APART)), _without_output(_without(after, APART))
    fields, texts = _values(old, new)
    fields += [replace(change, place=f"{OUTPUT}.{change.place}") for change in _schemas(was, now)]
    takes = _schemas(before.get("input"), after.get("input"))
    return Diff(fields, takes, texts, list(_tools(before, after)))


def in_words(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """The places that differ, some of them, as part of a sentence."""
    found = diff(before, after)
    told = [change.place for change in found.fields] + [text.place for text in found.texts]
    told += ["input"] * bool(found.input)
    for tool in found.tools:
        places = ", ".join(tool.places[:LONGEST_TOLD])
        told.append(f"tool {tool.tool} ({places if tool.kind == 'changed' else tool.kind})")
    more = f" and {len(told) - LONGEST_TOLD} more" if len(told) > LONGEST_TOLD else ""
    return ", ".join(told[:LONGEST_TOLD]) + more if told else "nothing that is told"


# -- values and texts --------------------------------------------------------------------------------------------------


def _without(content: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {name: value for name, value in content.items() if name not in names}


def _without_output(content: Mapping[str, Any]) -> tuple[dict[str, Any], Any]:
    """Without the type of its model's result, and that."""
    model = content.get("model")
    if not isinstance(model, Mapping):
        return dict(content), None
    return {**content, "model": _without(model, ("output",))}, model.get("output")


def _values(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[list[Change], list[TextChange]]:
    """Field by field, through objects; texts of several lines apart."""
    old, new = dict(_leaves(before)), dict(_leaves(after))
    changes: list[Change] = []
    texts: list[TextChange] = []
    for place in _in_order(old, new):
        was, now = old.get(place), new.get(place)
        if place in old and place in new and _equal(was, now):
            continue
        if _is_text(place, was) or _is_text(place, now):
            texts.append(text_change(place, _text(was), _text(now)))
        else:
            changes.append(_change(place, old, new))
    return changes, texts


def _leaves(value: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for name, item in value.items():
        if isinstance(item, Mapping) and item:
            yield from _leaves(item, f"{above}{name}.")
        elif item is not None:  # a content names what it does not set, or leaves it out
            yield f"{above}{name}", item


def _in_order(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """As the new one has them; what is gone comes last."""
    return [*new, *(place for place in old if place not in new)]


def _change(place: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Change:
    kind: Kind = "added" if place not in old else "removed" if place not in new else "changed"
    return Change(place, kind, old.get(place), new.get(place))


def _equal(one: Any, other: Any) -> bool:
    return type(one) is type(other) and bool(one == other)  # True is no 1, and 1 no 1.0: their digests differ


def _is_text(place: str, value: Any) -> bool:
    return isinstance(value, str) and ("\n" in value or place.rpartition(".")[2] in TEXTS)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else json.dumps(value)


def text_change(place: str, before: str, after: str) -> TextChange:
    return TextChange(place, before, after, list(_lines(before.splitlines(), after.splitlines())))


def _lines(old: Sequence[str], new: Sequence[str]) -> Iterator[TextLine]:
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    told = 0  # lines of the old text so far
    for group in matcher.get_grouped_opcodes(CONTEXT):
        if group[0][1] > told:
            yield TextLine("…", "")
        for tag, i1, i2, j1, j2 in group:
            if tag == "equal":
                yield from (TextLine(" ", line) for line in old[i1:i2])
            else:
                yield from (TextLine("-", line) for line in old[i1:i2])
                yield from (TextLine("+", line) for line in new[j1:j2])
            told = i2
    if told < len(old):
        yield TextLine("…", "")


# -- tools and schemas -------------------------------------------------------------------------------------------------


def _tools(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[ToolChange]:
    old, new = ({tool["name"]: tool for tool in content.get("tools") or ()} for content in (before, after))
    for name in _in_order(old, new):
        if name not in old or name not in new:
            yield ToolChange(name, "removed" if name in old else "added")
        elif old[name] != new[name]:
            changed = _tool(name, old[name], new[name])
            if changed.places:
                yield changed


def _tool(name: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> ToolChange:
    apart = ("name", "parameters", "returns")
    settings, texts = _values(_without(old, apart), _without(new, apart))
    parameters = _schemas(old.get("parameters"), new.get("parameters"))
    return ToolChange(name, "changed", parameters, _schemas(old.get("returns"), new.get("returns")), settings, texts)


def _schemas(before: Any, after: Any) -> list[Change]:
    old, new = (dict(_parts(schema)) if isinstance(schema, Mapping) else {} for schema in (before, after))
    return [_change(place, old, new) for place in _in_order(old, new) if old.get(place) != new.get(place)]


def _parts(schema: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Each place in what the schema describes, with what is said of it: `to.street`: "string, required"."""
    resolved = _resolved(schema, schema)
    if "properties" in resolved:
        yield from _properties(resolved, schema, "", DEEPEST)
    else:
        yield "value", _said(resolved, schema)
        yield from _below(resolved, schema, "value", DEEPEST)


def _properties(
    schema: Mapping[str, Any], root: Mapping[str, Any], above: str, depth: int
) -> Iterator[tuple[str, str]]:
    required = schema.get("required") or ()
    for name, part in schema["properties"].items():
        resolved = _resolved(part, root)
        said = _said(resolved, root)
        yield f"{above}{name}", f"{said}, required" if name in required else said
        yield from _below(resolved, root, f"{above}{name}", depth)


def _below(schema: Mapping[str, Any], root: Mapping[str, Any], place: str, depth: int) -> Iterator[tuple[str, str]]:
    if depth and schema.get("properties"):
        yield from _properties(schema, root, f"{place}.", depth - 1)
    items = schema.get("items")
    if depth and isinstance(items, Mapping):
        resolved = _resolved(items, root)
        yield f"{place}[]", _said(resolved, root)
        yield from _below(resolved, root, f"{place}[]", depth - 1)


def _resolved(schema: Any, root: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a reference within the schema points to, with what stands beside it."""
    found: Mapping[str, Any] = schema if isinstance(schema, Mapping) else {}
    for _ in range(DEEPEST):
        reference = found.get("$ref")
        if not isinstance(reference, str) or not reference.startswith("#/$defs/"):
            break
        target = (root.get("$defs") or {}).get(reference.removeprefix("#/$defs/"), {})
        found = {**target, **_without(found, ("$ref",))}
    return found


SILENT = ("type", "properties", "required", "items", "title", "$defs", "anyOf", "oneOf", "additionalProperties")


def _said(schema: Mapping[str, Any], root: Mapping[str, Any]) -> str:
    """Its type, and each bound: "integer, minimum 1, default 5"."""
    bounds = [f"{word} {json.dumps(value)}" for word, value in schema.items() if word not in SILENT]
    return ", ".join([_type(schema, root), *bounds])


def _type(schema: Mapping[str, Any], root: Mapping[str, Any]) -> str:
    kinds = schema.get("type")
    if isinstance(kinds, (str, list)):
        return kinds if isinstance(kinds, str) else " or ".join(map(str, kinds))
    either = schema.get("anyOf") or schema.get("oneOf")
    if isinstance(either, list):
        return " or ".join(_said(_resolved(part, root), root) for part in either)
    return "anything"
