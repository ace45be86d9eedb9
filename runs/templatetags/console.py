"""How the console writes times, statuses and values. Times are UTC; no key, digest or amount is ever shortened."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django import template
from django.forms import BoundField
from django.templatetags.static import static
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from journal.entries import Kind
from runs import values
from runs.models import Run, Status
from runs.pages.zones import time_text
from runs.short_ids import short_id
from runs.slots import Slot

register = template.Library()

# The design's name of a status (glyph and hue) and its word.
STATUSES: dict[str, tuple[str, str]] = {
    Status.QUEUED: ("queued", "Queued"),
    Status.RUNNING: ("running", "Running"),
    Status.AWAITING_APPROVAL: ("approval", "Waiting approval"),
    Status.NEEDS_RECONCILIATION: ("reconcile", "Needs reconciliation"),
    Status.WAITING: ("waiting", "Waiting"),
    Status.WAITING_FOR_VERSION: ("stranded", "Stranded"),
    Status.HELD: ("held", "Held"),
    Status.QUARANTINED: ("quarantined", "Quarantined"),
    Status.DONE: ("done", "Done"),
    Status.FAILED: ("failed", "Failed"),
    Status.CANCELLED: ("cancelled", "Cancelled"),
}
EFFECTS = {"read": "Read", "keyed": "Keyed", "probed": "Asked by key", "unkeyed": "Irreversible"}


@register.simple_tag
def icon(name: str) -> SafeString:
    return format_html(
        '<svg class="i i-{}" aria-hidden="true"><use href="{}#i-{}"></use></svg>', name, static("icons.svg"), name
    )


@register.simple_tag
def status_badge(status: str, size: str = "") -> SafeString:
    glyph, word = STATUSES.get(status, ("off", status))
    return mark(glyph, word, size)


@register.simple_tag
def mark(glyph: str, word: str, size: str = "") -> SafeString:
    """A glyph, a word and a hue: never colour alone."""
    return format_html(
        '<span class="status" data-s="{}" data-size="{}">{}{}</span>', glyph, size, icon(f"s-{glyph}"), word
    )


@register.simple_tag
def effect_tag(effect: str) -> SafeString:
    return format_html(
        '<span class="tag" data-effect="{}">{}{}</span>', effect, icon(f"e-{effect}"), EFFECTS.get(effect, effect)
    )


@register.simple_tag
def kind_icon(kind: str) -> SafeString:
    return icon(f"k-{kind if kind in Kind.__members__ else 'NOTE'}")


@register.simple_tag
def run_link(run_id: UUID | str) -> SafeString | str:
    """The short id, leading to the run; what is no id stays text."""
    try:
        name = short_id(UUID(str(run_id)))
    except ValueError:
        return values.readable(str(run_id))
    return format_html('<a class="id" href="{}">{}</a>', reverse("runs:run", args=[name]), name)


@register.filter
def widget_template(field: BoundField) -> str:
    """The partial of a form's field, named after its widget."""
    return f"_field/{type(field.field.widget).__name__.lower()}.html"


@register.filter
def question_template(slot: Slot) -> str:
    """The partial of what a person is asked: whether it happened, whether it may be sent, or the agent's question."""
    return f"runs/question/{'ask' if slot.kind == 'ask' else slot.state}.html"


@register.filter
def schema_word(schema: Any) -> str:
    """What kind of value a JSON schema asks for, in a word or two."""
    if not isinstance(schema, dict):
        return "anything"
    if isinstance(either := schema.get("anyOf"), list):
        return " or ".join(dict.fromkeys(schema_word(one) for one in either))
    if isinstance(ref := schema.get("$ref"), str):
        return values.line(ref.rpartition("/")[2])
    if "const" in schema or "enum" in schema:
        return f"one of {values.line(schema['enum'])}" if "enum" in schema else values.line(schema["const"])
    kind = schema.get("type", "object" if "properties" in schema else "anything")
    if isinstance(kind, list):
        return " or ".join(schema_word(schema | {"type": one}) for one in kind)
    named = schema.get("title") if kind == "object" else None
    return values.line(named if isinstance(named, str) and named else kind)


@register.filter
def pretty(value: Any) -> str:
    """A JSON value, indented."""
    return json.dumps(value, indent=2, default=str)


@register.filter
def why(run: Run) -> str:
    """Why it does not move; a queued run that nobody said anything of waits for a worker."""
    return values.readable(run.reason or ("waits for a free worker" if run.status == Status.QUEUED else ""))


@register.filter
def sentence(text: str) -> str:
    """With a full stop, unless it ends in one or in a question mark."""
    return text if not text or text[-1] in ".?!…" else f"{text}."


@register.filter
def oneline(value: Any) -> str:
    return values.line(value)


@register.filter
def at_most(number: int, most: int) -> int:
    return min(number, most)


@register.filter
def posix(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(float(seconds), UTC)


@register.filter
def is_over(at: datetime) -> bool:
    return at <= timezone.now()


@register.filter
def until(seconds: float | datetime) -> str:
    """How long to then (a datetime, or POSIX seconds); "a moment" where it has come and nobody has acted on it yet."""
    at = seconds if isinstance(seconds, datetime) else datetime.fromtimestamp(float(seconds), UTC)
    left = (at - timezone.now()).total_seconds()
    return duration(left) if left > 0 else "a moment"


@register.filter
def readable(text: object) -> str:
    return values.readable(str(text))


@register.filter
def all_readable(texts: Iterable[object], between: str = ", ") -> str:
    """Of several, in one line. Django's `join` would escape each, and the page then all of them again."""
    return between.join(readable(text) for text in texts)


@register.filter
def nodes(value: Any) -> list[values.Node]:
    return values.nodes(value)


@register.filter
def short(run_id: UUID) -> str:
    return short_id(run_id)


@register.filter
def glyph(status: str) -> str:
    return STATUSES.get(status, ("off", status))[0]


@register.filter
def clock(at: datetime | None) -> SafeString | str:
    """14:19:40, with the date in front where it could be another day's."""
    if at is None:
        return "never"
    at, text = at.astimezone(UTC), time_text(at, timezone.now())
    return format_html(
        '<time datetime="{}" title="{} UTC">{}</time>', at.isoformat(), f"{at:%Y-%m-%d %H:%M:%S.%f}", text
    )


@register.filter
def stamp(at: datetime | None) -> SafeString | str:
    """The whole instant: 2026-11-17 14:19:40.118204 UTC."""
    if at is None:
        return "never"
    at = at.astimezone(UTC)
    return format_html('<time datetime="{}">{} UTC</time>', at.isoformat(), f"{at:%Y-%m-%d %H:%M:%S.%f}")


@register.filter
def ago(at: datetime | None) -> str:
    return "never" if at is None else duration((timezone.now() - at).total_seconds())


@register.filter
def since(now: datetime, at: datetime) -> str:
    """How long ago it was then."""
    return duration((now - at).total_seconds())


@register.filter
def duration(seconds: object) -> str:
    """342 ms, 2.1 s, 12 m 28 s, 5 h 02 m, 2 d 1 h."""
    if not isinstance(seconds, int | float):  # a contract of an older release may not say
        return "not known"
    seconds = max(0.0, seconds)
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes, rest = divmod(int(seconds), 60)
    if minutes < 60:
        return f"{minutes} m {rest:02} s"
    hours, minutes = divmod(minutes, 60)
    if hours < 24:
        return f"{hours} h {minutes:02} m"
    return f"{hours // 24} d {hours % 24} h"
