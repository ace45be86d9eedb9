"""The manual beside the console, where `make docs` has built it. It knows of no run, so anybody may read it."""

import mimetypes
from pathlib import Path

from django.core.exceptions import SuspiciousFileOperation
from django.http import Http404, HttpRequest, HttpResponse
from django.utils._os import safe_join
from django.views.decorators.http import condition, require_safe

from config.environment import ROOT

BUILT = ROOT / "docs" / "_build"


def changed(request: HttpRequest, page: str) -> str | None:
    """The file's age as an ETag; None where there is none."""
    try:
        return f'"{file_of(page).stat().st_mtime_ns}"'
    except (OSError, Http404):
        return None


@require_safe
@condition(etag_func=changed)
def manual(request: HttpRequest, page: str) -> HttpResponse:
    """One file of it, read whole: the largest is the search index."""
    if not BUILT.is_dir():
        return HttpResponse("The manual is not built here yet: run `make docs`.\n", "text/plain", 404)
    file = file_of(page)
    if not file.is_file():
        raise Http404
    kind, _ = mimetypes.guess_type(file.name)
    return HttpResponse(file.read_bytes(), content_type=kind or "application/octet-stream")


def file_of(page: str) -> Path:
    if "\0" in page:
        raise Http404
    try:
        return Path(safe_join(BUILT, page or "index.html"))
    except SuspiciousFileOperation:
        raise Http404 from None
