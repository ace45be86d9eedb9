"""Values as a model reads them: text, the same for a value in memory and for the one that is read from the journal."""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from journal.encoding import tagged
from runs.secrets import STRUCK

SURROGATES = re.compile("[\ud800-\udfff]")


def text_of(value: Any) -> str:
    """A text as it is, anything else as JSON; without what no provider takes."""
    return clean(value if type(value) is str else json.dumps(plain(value), ensure_ascii=False))


def clean(text: str) -> str:
    """Lone surrogates cannot be sent in UTF-8."""
    return SURROGATES.sub("�", text)


def without_access(url: str | None) -> str | None:
    """An address without the name, the password and the parameters that may give access to it."""
    if not url:
        return url
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def plain(value: Any) -> Any:
    """In JSON's own types: no tags, which would say nothing to a model. Key order is kept."""
    return _untagged(tagged(value))


def cleaned(value: Any) -> Any:
    """JSON with `clean` texts in it."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, list):
        return [cleaned(item) for item in value]
    if isinstance(value, dict):
        return {clean(key): cleaned(item) for key, item in value.items()}
    return value


def _untagged(value: Any) -> Any:
    if isinstance(value, list):
        return [_untagged(item) for item in value]
    if isinstance(value, str):
        return clean(value)
    if not isinstance(value, dict):
        return value
    if type(value.get("$")) is not str:
        return {clean(key): _untagged(item) for key, item in value.items()}
    return _said_by_tag(value)


def _said_by_tag(said: dict[str, Any]) -> Any:
    match said["$"]:
        case "str":
            return clean("".join(part if type(part) is str else chr(part) for part in said["parts"]))
        case "int":
            return int(said["hex"], 16)
        case "datetime" | "date" | "time":
            return said["iso"]
        case "decimal" | "uuid" | "float":
            return said["value"]
        case "timedelta":
            return f"{said['days']} days {said['seconds']} seconds"
        case "tuple" | "set" | "frozenset":
            return _untagged(said["items"])
        case "dict":
            return {text_of_tagged(key): _untagged(item) for key, item in said["items"]}
        case "enum" | "object":
            return _untagged(said["value"])
        case "dataclass" | "model":
            return _untagged(said["fields"])
        case "exception":
            return f"{said['type']}: {_untagged(said['message'])}"
        case "sealed":
            return STRUCK
        case "payload":
            return f"[{said['size']} bytes of {said['media_type']}, not shown]"
        case "bytes":
            return f"[{len(said['base64'].rstrip('=')) * 3 // 4} bytes, not shown]"
        case _:
            return f"[a value of type {said.get('type', '?')}, not kept]"


def text_of_tagged(key: Any) -> str:
    found = _untagged(key)
    return found if isinstance(found, str) else json.dumps(found, ensure_ascii=False)
