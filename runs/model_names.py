"""Names of models: whether one is a snapshot, or an alias that may mean another model tomorrow. Pure.

A release is immutable, and a run goes on under it; what a provider puts behind an alias changes all the same.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

MOVING = re.compile(r"(?:^|[-_:@/.])(latest|preview|default|stable|nightly|experimental|exp|beta)$", re.IGNORECASE)
# A date (2024-08-06, 20250929, 0613), a revision after the last dash (-002), a tag (:8b-instruct-q4_0) or a digest.
SNAPSHOT = re.compile(r"\d{4}-\d{2}-\d{2}|\d{8}|-\d{3,4}\b|@[\w.-]*\d|@sha256:|:[\w.-]*\d[\w.-]*$", re.IGNORECASE)

OF_TESTS = ("function", "test")  # models that a library makes from a function


def floating_alias(model: str) -> str:
    """Why the name floats, as a part of a sentence; "" for a snapshot, and for a name without a provider in front
    ("openai:…"), of which nothing is known."""
    if (word := MOVING.search(model)) is not None:
        return f"{word[1]!r} is whatever the provider says at that time"
    provider, provided, name = model.partition(":")
    if not provided or provider in OF_TESTS or SNAPSHOT.search(name):
        return ""
    return "it names no snapshot: no date, revision or digest"


def models_in(content: Mapping[str, Any]) -> list[str]:
    """The models of a release's content, in the order in which they are asked."""
    model = content.get("model")
    if not isinstance(model, Mapping):
        return []
    return [str(name) for name in (model.get("name"), *(model.get("fallback") or ())) if name]


def floating_models(content: Mapping[str, Any]) -> dict[str, str]:
    """Why its name floats, by each model of which it does."""
    return {name: why for name in models_in(content) if (why := floating_alias(name))}


def floating_in(content: Mapping[str, Any]) -> str:
    """Why the name of the first model floats, or else that of a fallback, which is named then; "" if none does."""
    found = floating_models(content)
    first = next(iter(models_in(content)), "")
    if first in found:
        return found[first]
    return next((f"its fallback {name}: {why}" for name, why in found.items()), "")
