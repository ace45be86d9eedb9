"""Links within the page of a run, and values as foldable JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django import template
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from journal.encoding import tagged
from journal.entries import Entry
from runs.models import Release
from runs.pages.asked import Asked
from runs.pages.json_lines import Line, json_lines
from runs.short_ids import short_id
from runs.slots import Slot
from runs.values import readable

LONGEST_BODY = 1_000

register = template.Library()


@register.simple_tag(takes_context=True)
def here(context: template.Context, **changed: Any) -> str:
    """The query of this page with something changed: `{% here seq=5 tab="entry" %}`."""
    asked: Asked = context.get("address") or Asked()
    return asked.query(**changed)


@register.simple_tag
def entry_link(run_id: object, seq: object) -> SafeString | str:
    """seq 5 of r-7f3k9q2m, leading there; what names no run stays text."""
    try:
        name = short_id(UUID(str(run_id)))
    except ValueError:
        return readable(f"seq {seq} of {run_id}")
    address = f"{reverse('runs:run', args=[name])}?{urlencode({'seq': str(seq)})}"
    return format_html('<a href="{}">seq {} of <span class="id">{}</span></a>', address, readable(str(seq)), name)


@register.simple_tag
def release_link(release_id: object) -> SafeString | str:
    """refund-desk 8, leading to its page; of a release that is not known here the beginning of its digest."""
    release = Release.objects.filter(id=str(release_id)).only("agent", "version").first()
    if release is None:
        return readable(str(release_id)[:8])
    address = reverse("runs:release", args=[release.id])
    return format_html('<a href="{}">{}</a>', address, readable(f"{release.agent} {release.version}"))


@register.simple_tag
def address_of(page: Any, **changed: Any) -> str:
    """The query of a page that knows its own address, with something changed."""
    return str(page.address(**changed))


@register.filter
def question_act_template(slot: Slot) -> str:
    """The partial of the one button that what waits for a person leads to."""
    return f"runs/question/act/{'ask' if slot.kind == 'ask' else slot.state}.html"


@register.filter
def body_line(entry: Entry) -> str:
    """A body as it is stored, cut where it is long; the whole is in the entry."""
    text = json.dumps(tagged(entry.body), ensure_ascii=False, default=str)
    return readable(text if len(text) <= LONGEST_BODY else f"{text[:LONGEST_BODY]}…")


@register.filter
def asked_for(given: Any) -> Any:
    """Of an input that holds a prompt: what was said."""
    prompt = given.get("prompt") if isinstance(given, Mapping) else None
    return prompt if isinstance(prompt, str) and prompt.strip() else given


@register.filter
def as_json(value: Any) -> list[Line]:
    return json_lines(value)


@register.filter
def of(found: Mapping[Any, Any], key: Any) -> Any:
    """What a mapping has under this key; None without."""
    return found.get(key)


@register.filter
def row_time(at: datetime, start: datetime) -> SafeString:
    """14:19:40, or 14:19+2d on a later day than the line begins; the whole instant is in its tooltip."""
    at, days = at.astimezone(UTC), (at.astimezone(UTC).date() - start.astimezone(UTC).date()).days
    text = f"{at:%H:%M}+{days}d" if days else f"{at:%H:%M:%S}"
    whole = f"{at:%Y-%m-%d %H:%M:%S.%f}"
    return format_html('<time datetime="{}" title="{} UTC">{}</time>', at.isoformat(), whole, text)


@register.filter
def amount(value: float) -> str:
    """44,322 and 0.31: whole numbers without a point, others as they are."""
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.4f}".rstrip("0")


@register.filter
def hash_start(value: str) -> str:
    """The first eight digits, which people compare."""
    return value[:8]


@register.filter
def hash_rest(value: str) -> str:
    return value[8:]
