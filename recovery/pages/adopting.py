"""Late results of fenced workers, and the files that people gave as evidence."""

from __future__ import annotations

from functools import partial

from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils.http import content_disposition_header
from django.views.decorators.http import require_GET, require_http_methods

from journal.encoding import Pointer
from journal.payloads import payload_store
from recovery.commands import adopt_evidence
from recovery.forms import AdoptForm
from recovery.items import ItemPage
from recovery.pages.deciding import address, refused, shown
from recovery.pages.refusing import on_refusal
from runs.access import RECONCILE, VIEW
from runs.pages.dialogs import done
from runs.queries import find_run
from runs.signed_in import signed_in


@require_http_methods(["GET", "POST"])
@signed_in(RECONCILE)
def adopt(request: HttpRequest, ref: str, seq: int, evidence: int) -> HttpResponseBase:
    page = ItemPage(find_run(ref, request.user), seq)
    late = next((late for late in page.late if late.id == evidence), None)
    if late is None:
        raise Http404("There is no such late result.")
    form = AdoptForm(request.POST or None)
    more = {"run_id": page.run.id, "late": late}
    on_refusal(request, partial(refused, request, "adopt", seq, form, more))
    if request.method == "POST" and form.is_valid():
        who = request.user.get_username()
        adopt_evidence(run_id=page.run.id, seq=seq, evidence=evidence, actor=who, note=form.cleaned_data["note"])
        return done(
            request, address(page), f"{page.named}. The late result was adopted: written to the journal with your name."
        )
    return shown(request, "adopt", page, form, late=late)


@require_GET
@signed_in(VIEW)
def evidence(request: HttpRequest, ref: str, seq: int, sha256: str) -> HttpResponseBase:
    """The bytes as they were given: a download, never a page of this site, whatever they are."""
    page = ItemPage(find_run(ref, request.user), seq)
    file = next((said.file for said in page.verdicts if said.file and said.file.get("sha256") == sha256), None)
    if file is None or not isinstance(file.get("content"), Pointer):
        raise Http404("There is no such file.")
    answer = HttpResponse(payload_store().open(file["content"]), content_type="application/octet-stream")
    answer["Content-Disposition"] = content_disposition_header(True, str(file["name"]))
    answer["X-Content-Type-Options"] = "nosniff"
    return answer
