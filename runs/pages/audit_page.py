"""The audit list: what people did and what they were refused, and its export."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from typing import Any

from asgiref.sync import sync_to_async
from django import forms
from django.db import connection
from django.http import HttpRequest, QueryDict, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_GET

from runs.access import EXPORT_AUDIT, SEE_AUDIT, Person
from runs.audit import record
from runs.audit_list import COLUMNS, GROUPS, Asked, as_csv, as_lines, batches, link_of, page_of
from runs.models import AuditRecord
from runs.pages.asked import whole
from runs.pages.zones import zone_of
from runs.signed_in import signed_in

# By act: its word, and the glyph that stands for it. What is not here is told by its own name.
WORDS: Mapping[str, tuple[str, str]] = {
    "run.start": ("Started", "running"),
    "run.cancel": ("Cancelled", "cancelled"),
    "run.hold": ("Held", "held"),
    "run.resume": ("Resumed", "running"),
    "run.release": ("Released", "running"),
    "run.retry": ("Tried again", "running"),
    "run.note": ("Noted", "off"),
    "run.signal": ("Signalled", "waiting"),
    "run.answer": ("Answered", "approval"),
    "run.pin": ("Pinned", "stranded"),
    "run.replay": ("Replayed", "off"),
    "intent.approve": ("Approved", "approval"),
    "intent.deny": ("Rejected", "failed"),
    "intent.edit": ("Edited", "approval"),
    "intent.ask": ("Asked back", "approval"),
    "intent.answer": ("Replied", "approval"),
    "intent.reconcile": ("Reconciled", "reconcile"),
    "release.promote": ("Promoted", "ok"),
    "release.canary": ("Shared new runs", "running"),
    "release.rollback": ("Rolled back to", "warn"),
    "release.retire": ("Retired", "off"),
    "gate.place": ("Placed a gate", "held"),
    "gate.lift": ("Lifted a gate", "running"),
    "drain.order": ("Ordered a drain", "draining"),
    "drain.extend": ("Extended a drain", "draining"),
    "drain.until_gone": ("Ends a drain with its worker", "draining"),
    "drain.lift": ("Lifted a drain", "running"),
    "token.create": ("Made a token", "ok"),
    "token.revoke": ("Revoked a token", "off"),
    "user.scope": ("Set a scope", "ok"),
    "login": ("Signed in", "ok"),
    "logout": ("Signed out", "off"),
    "login.refused": ("Login refused", "failed"),
    "refused": ("Refused", "failed"),
    "view.save": ("Saved a view", "ok"),
    "view.change": ("Changed a view", "ok"),
    "view.delete": ("Deleted a view", "off"),
    "audit.export": ("Exported the list", "ok"),
}


LONGEST_TOLD = 200


class Filter(forms.Form):
    """What cannot be understood filters nothing, and is said."""

    q = forms.CharField(max_length=300, required=False)
    did = forms.ChoiceField(choices=[("", "")] + [(name, name) for name in GROUPS], required=False)
    since = forms.DateField(required=False)
    until = forms.DateField(required=False)


@require_GET
@signed_in(SEE_AUDIT)
def audit(request: HttpRequest) -> HttpResponseBase:
    form, asked = asked_in(request)
    found, after = page_of(asked, request.user, whole(request.GET.get("after")))
    context = {
        "section": "audit", "form": form, "groups": [(name, group[0]) for name, group in GROUPS.items()],
        "rows": [shown(row) for row in found], "older": query(request, after=after) if after else "",
        "newest": query(request) if request.GET.get("after") else "", "export": query(request),
        "asked": any(value for name, value in request.GET.items() if name in form.fields),
    }  # fmt: skip
    status = 422 if form.errors and request.path.endswith("/export") else 200
    return render(request, "runs/audit.html", context, status=status)


def asked_in(request: HttpRequest) -> tuple[Filter, Asked]:
    form = Filter(request.GET)
    form.is_valid()
    if unknown := sorted(request.GET.keys() - form.fields.keys() - {"after", "as"}):
        form.add_error(None, f"There is no filter {', '.join(unknown)[:LONGEST_TOLD]}.")
    given = form.cleaned_data
    since, until = (given.get(name) for name in ("since", "until"))
    return form, Asked(
        q=given.get("q") or "",
        group=given.get("did") or "",
        since=start_of(since, request) if since else None,
        before=start_of(until + timedelta(days=1), request) if until and until < date.max else None,
    )


def start_of(day: date, request: HttpRequest) -> datetime:
    """When that day of the viewer began."""
    return timezone.make_aware(datetime.combine(day, time()), zone_of(request))


def query(request: HttpRequest, **more: Any) -> str:
    rest: QueryDict = request.GET.copy()
    for name in ("after", "as"):
        rest.pop(name, None)
    for name, value in more.items():
        rest[name] = str(value)
    return rest.urlencode()


def words_of(row: AuditRecord) -> tuple[str, str]:
    """What was done, in a word or a few, and its look."""
    if row.act == "release.canary" and detail_of(row).get("share") == 0:
        return "Ended the canary", "off"
    return WORDS.get(row.act, (row.act, "off"))


def detail_of(row: AuditRecord) -> Mapping[str, Any]:
    return row.detail if isinstance(row.detail, dict) else {}


def shown(row: AuditRecord) -> dict[str, Any]:
    word, look = words_of(row)
    detail = detail_of(row)
    said = {name: value for name, value in detail.items() if value not in (None, "", [], {})}
    seq = said.pop("seq", None)
    return {"row": row, "word": word, "look": look, "said": said, "seq": seq, "link": link_of(row)}


# -- export ------------------------------------------------------------------------------------------------------------

FORMATS: Mapping[str, tuple[str, str, Callable[[Sequence[AuditRecord]], str]]] = {
    "csv": ("text/csv; charset=utf-8", f"{','.join(COLUMNS)}\r\n", as_csv),
    "jsonl": ("application/x-ndjson", "", as_lines),
}


@require_GET
@signed_in(EXPORT_AUDIT)
def export(request: HttpRequest) -> HttpResponseBase:
    """All that the filter finds, in one file. The export is an act, too."""
    form, asked = asked_in(request)
    if form.errors:  # not more than was asked for: what the file leaves out cannot be seen in it
        return audit(request)
    name = "csv" if request.GET.get("as") == "csv" else "jsonl"
    media, head, written = FORMATS[name]
    record(request.user.get_username(), "audit.export", subject=name, filter=query(request))
    answer = StreamingHttpResponse(parts(asked, request.user, head, written), content_type=media)
    answer.headers["Content-Disposition"] = f'attachment; filename="audit.{name}"'
    return answer


async def parts(
    asked: Asked, user: Person, head: str, written: Callable[[Sequence[AuditRecord]], str]
) -> AsyncIterator[str]:
    """Part by part; between two parts it holds no connection, however slow its reader is."""
    yield head
    reading = batches(asked, user)
    while found := await sync_to_async(next_of)(reading):
        yield written(found)


def next_of(reading: Any) -> list[AuditRecord]:
    try:
        found: list[AuditRecord] = next(reading, [])
        return found
    finally:
        if not connection.in_atomic_block:
            connection.close()
