"""The strip of facts below a run's head: what it is pinned to, and what it has used of what it may."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.utils import timezone

from journal.encoding import canonical
from runs.brakes import spent
from runs.models import Run
from runs.state import RunState


@dataclass(frozen=True, slots=True)
class Pin:
    """`model` as the release names it; digests in hex, empty where there is nothing to digest."""

    model: str
    prompt: str
    tools: str
    code: str


@dataclass(frozen=True, slots=True)
class Used:
    """`amount` since the start; of `cap`, which a resume after a brake gives once more, `of_cap` is used. `unknown`: so
    many requests are not in it: nobody knows what they cost."""

    name: str
    amount: float
    of_cap: float
    cap: float | None
    unknown: int = 0

    @property
    def over(self) -> bool:
        return self.cap is not None and self.of_cap > self.cap


def pin_of(run: Run, state: RunState) -> Pin:
    content = run.release.content
    return Pin(model_of(content), digest_of(prompt_of(content)), digest_of(content.get("tools")), state.code)


def model_of(content: Mapping[str, Any]) -> str:
    """Its name; empty where nothing asks a model."""
    model = content.get("model")
    return str(model.get("name", "") if isinstance(model, dict) else model or "")


def model_in(content: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a release says of its model beside its name; empty where that is all."""
    model = content.get("model")
    return model if isinstance(model, Mapping) else {}


def prompt_of(content: Mapping[str, Any]) -> str:
    model = content.get("model")
    return str(content.get("prompt") or (model.get("prompt") if isinstance(model, dict) else "") or "")


def settings_of(content: Mapping[str, Any]) -> Mapping[str, Any]:
    """What its model is set to, the timeout of a request among it."""
    model = content.get("model")
    if not isinstance(model, dict):
        return {}
    settings = model.get("settings")
    return {name: model[name] for name in ("timeout",) if name in model} | (settings or {})


def digest_of(value: Any) -> str:
    """SHA-256 of a text, or of any other value in our encoding; empty where there is nothing to digest."""
    if not value:
        return ""
    return hashlib.sha256(value.encode() if isinstance(value, str) else canonical(value)).hexdigest()


def used_of(run: Run, state: RunState) -> list[Used]:
    """What was used, and what is bounded even where nothing is used yet."""
    if run.input is not None or not state.times:
        return []
    return [use for use in _uses(run, state) if use.amount or use.unknown or use.cap is not None]


def _uses(run: Run, state: RunState) -> Iterator[Used]:
    budget = run.release.content.get("budget") or {}
    now = (run.ended_at or timezone.now()).timestamp()
    total, before = spent(state, now), state.budget_from
    began = before.at or state.time_of(1).timestamp()
    yield Used("tokens", total.tokens, total.tokens - before.tokens, budget.get("tokens"))
    yield Used("cost", total.cost, total.cost - before.cost, budget.get("cost"), total.unpriced)
    yield Used("steps", total.steps, total.steps - before.steps, budget.get("steps"))
    if "seconds" in budget:
        yield Used("seconds", now - state.time_of(1).timestamp(), now - began, budget["seconds"])
