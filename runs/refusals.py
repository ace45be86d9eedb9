"""What somebody tried and may not: the audit list keeps it, though nothing was written."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest

from runs.audit import LONGEST_NAME, record
from runs.models import Run
from runs.queries import ids_ending_in
from runs.signed_in import READS


def record_refusal(request: HttpRequest, why: str, **detail: Any) -> None:
    """Only of who is signed in, and of what would have written: whoever only looks leaves no trace."""
    user = getattr(request, "user", None)
    if request.method in READS or user is None or not user.is_authenticated:
        return
    given = request.resolver_match.kwargs if request.resolver_match is not None else {}
    ref, seq = str(given.get("ref", "")), str(given.get("seq", ""))
    row = Run.objects.filter(id__in=ids_ending_in(ref)).only("agent").first() if ref else None
    run, agent = (row.id, row.agent) if row is not None else (None, "")
    if seq.isdigit():
        detail["seq"] = int(seq)
    subject = f"{request.method} {request.path}"[:LONGEST_NAME]
    record(user.get_username(), "refused", run=run, agent=agent, subject=subject, reason=why, **detail)
