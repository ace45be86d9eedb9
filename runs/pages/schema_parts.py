"""A JSON schema read as the parts of a form: what can be asked field by field, and what has to be written as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from runs.values import AWKWARD, readable

Kind = Literal["object", "text", "lines", "integer", "number", "either", "flag", "choice", "date", "list", "json"]

LEVELS = 2  # of objects inside the outermost
MOST_PARTS = 60
MOST_OPTIONS = 100
HOPS = 20  # of references that lead to references
LONG_TEXT = 200  # characters from which on a text gets several lines
SCALARS: Mapping[str, Kind] = {"string": "text", "integer": "integer", "number": "number", "boolean": "flag"}

# What binds several fields, or says what they must not be: the whole value is judged by these, no field can show them.
ENTANGLED = ("anyOf", "oneOf", "allOf", "not", "if", "patternProperties", "$dynamicRef", "unevaluatedProperties")


class TooLarge(ValueError):
    """The schema has more parts than a form should."""


@dataclass(frozen=True, slots=True)
class Part:
    """One field of a form, or an object of several. `path`: names from the root. `schema`: with references followed."""

    kind: Kind
    path: tuple[str, ...]
    schema: Mapping[str, Any]
    required: bool
    nullable: bool = False
    options: tuple[Any, ...] = ()
    parts: tuple[Part, ...] = ()
    item: Kind | None = None  # of a list: what each line is
    either: tuple[str, ...] = ()  # what one line may be, as JSON schema names it: a number or a text (a Decimal)
    asked_as: str = ""  # where it is asked in another way than its schema says

    @property
    def name(self) -> str:
        return self.path[-1] if self.path else ""

    @property
    def label(self) -> str:
        title = self.schema.get("title")
        return readable(title if isinstance(title, str) and title else self.name.replace("_", " ").capitalize())

    @property
    def has_default(self) -> bool:
        return "default" in self.schema

    def leaves(self) -> Iterator[Part]:
        if self.kind != "object":
            yield self
        for part in self.parts:
            yield from part.leaves()


def parts_of(schema: Any) -> Part:
    """The form of a schema; of one that is too large or no object the one part JSON."""
    whole = schema if isinstance(schema, Mapping) else {}
    try:
        return Reader(whole).part(whole, (), required=True)
    except TooLarge:
        return Part("json", (), whole, required=True)


class Reader:
    """Reads at most MOST_PARTS parts, and follows a reference at most HOPS times: a schema may lead in circles."""

    def __init__(self, whole: Mapping[str, Any]) -> None:
        self.whole, self.read = whole, 0

    def part(self, schema: Any, path: tuple[str, ...], *, required: bool) -> Part:
        self.read += 1
        if self.read > MOST_PARTS:
            raise TooLarge
        if either := either_of(schema):
            nullable = "null" in either
            return Part("either", path, schema, required, nullable, either=tuple(set(either) - {"null"}))
        found, nullable = self.plain(schema)
        if found is None:
            return Part("json", path, schema if isinstance(schema, Mapping) else {}, required)
        if (options := options_of(found, nullable)) is not None:
            return Part("choice", path, found, required, None in options, options)
        kind = SCALARS.get(str(found.get("type")))
        if kind == "flag":
            return flag_of(found, path, required, nullable)
        if kind is not None:
            kind = kind_of_text(found, path) if kind == "text" else kind
            return Part(kind, path, found, required, nullable)
        if found.get("type") == "array" and (item := self.item(found)) is not None:
            return Part("list", path, found, required, nullable, item=item)
        if is_form(found) and len(path) <= LEVELS:
            return Part("object", path, found, required, nullable, parts=self.fields(found, path))
        return Part("json", path, found, required, nullable)

    def fields(self, schema: Mapping[str, Any], path: tuple[str, ...]) -> tuple[Part, ...]:
        needed = schema.get("required") or ()
        return tuple(
            self.part(inner, (*path, name), required=name in needed) for name, inner in schema["properties"].items()
        )

    def item(self, schema: Mapping[str, Any]) -> Kind | None:
        """What stands on each line, if each is a scalar of the same kind."""
        if "prefixItems" in schema or "contains" in schema:
            return None
        found, nullable = self.plain(schema.get("items"))
        if found is None or nullable:
            return None
        options = options_of(found, False)
        if options is not None and not all(isinstance(option, str) for option in options):
            return None
        kind = SCALARS.get(str(found.get("type", "string" if options else "")))
        return kind if kind in ("text", "integer", "number") else None

    def plain(self, schema: Any) -> tuple[Mapping[str, Any] | None, bool]:
        """The schema itself, and whether null is allowed beside it; None where it is no plain one."""
        nullable = False
        for _ in range(HOPS):
            if not isinstance(schema, Mapping):
                return None, nullable
            if "$ref" in schema:
                schema = self.followed(schema)
            elif (other := or_null(schema)) is not None:
                schema, nullable = other, True
            elif isinstance(both := schema.get("allOf"), list) and len(both) == 1 and isinstance(both[0], Mapping):
                schema = {**both[0], **{name: said for name, said in schema.items() if name != "allOf"}}
            else:
                return (None if any(word in schema for word in ENTANGLED) else schema), nullable
        return None, nullable

    def followed(self, schema: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """What a reference inside this schema names, with what is said beside it."""
        ref = schema["$ref"]
        if not isinstance(ref, str) or not ref.startswith("#"):
            return None
        found: Any = self.whole
        for word in ref.removeprefix("#").split("/")[1:]:
            name = word.replace("~1", "/").replace("~0", "~")
            if not isinstance(found, Mapping) or name not in found:
                return None
            found = found[name]
        if not isinstance(found, Mapping):
            return None
        unnamed = {name: said for name, said in found.items() if name != "title"}
        return {**unnamed, **{name: said for name, said in schema.items() if name != "$ref"}}


def either_of(schema: Any) -> tuple[str, ...]:
    """The names of its types, if it takes a text or a number, whatever else is asked of these."""
    if not isinstance(schema, Mapping):
        return ()
    names = schema.get("type")
    if isinstance(branches := schema.get("anyOf"), list):
        simple = all(
            isinstance(one, Mapping) and not {"enum", "const", "$ref", *ENTANGLED} & set(one) for one in branches
        )
        names = [one.get("type") for one in branches] if simple else None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        return ()
    scalars = set(names) - {"null"}
    return tuple(names) if "string" in scalars and len(scalars) > 1 and scalars <= {*SCALARS} - {"boolean"} else ()


def or_null(schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """The other of `this or null`, with what is said around it."""
    kinds = schema.get("type")
    if isinstance(kinds, list) and len(kinds) == 2 and "null" in kinds:
        return {**schema, "type": next((kind for kind in kinds if kind != "null"), "null")}
    for word in ("anyOf", "oneOf"):
        either = schema.get(word)
        if isinstance(either, list) and len(either) == 2 and {"type": "null"} in either:
            other = next((one for one in either if one != {"type": "null"}), None)
            if isinstance(other, Mapping):
                return {**other, **{name: said for name, said in schema.items() if name != word}}
    return None


def options_of(schema: Mapping[str, Any], nullable: bool) -> tuple[Any, ...] | None:
    """What may be chosen, if it can be told one by one."""
    if "const" in schema:
        found = [schema["const"]]
    elif isinstance(schema.get("enum"), list) and len(schema["enum"]) <= MOST_OPTIONS:
        found = list(schema["enum"])
    else:
        return None
    written = [json.dumps(option) for option in found]
    return tuple(found) if not nullable or "null" in written else (*found, None)


def flag_of(schema: Mapping[str, Any], path: tuple[str, ...], required: bool, nullable: bool) -> Part:
    """A box to tick, or yes and no one by one where unticked could mean two things, or it is all that is asked."""
    if nullable or not path or not (required or isinstance(schema.get("default"), bool)):
        options = (True, False, None) if nullable else (True, False)
        return Part("choice", path, schema, required, nullable, options)
    return Part("flag", path, schema, required)


def kind_of_text(schema: Mapping[str, Any], path: tuple[str, ...]) -> Kind:
    if schema.get("format") == "date":
        return "date"
    longest = schema.get("maxLength")
    long = longest > LONG_TEXT if isinstance(longest, int) else not path and "format" not in schema
    return "lines" if long or "contentMediaType" in schema else "text"


def is_form(schema: Mapping[str, Any]) -> bool:
    """Whether it is an object whose fields are named, by names that a page can send back."""
    properties = schema.get("properties")
    named = isinstance(properties, Mapping) and bool(properties) and not any(map(AWKWARD.search, properties))
    return named and schema.get("type", "object") == "object"
