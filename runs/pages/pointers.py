"""Payloads that are kept outside of their entry: how they begin, and whether they are what the entry says."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.db import connection
from django.http import Http404, HttpResponse
from django.http.response import HttpResponseBase

from journal.encoding import Pointer
from journal.errors import PayloadAltered, PayloadError, PayloadMissing
from journal.payloads import payload_store
from journal.read import read_entry
from runs.models import Run
from runs.pages.pictures import is_picture, picture_type

PREVIEW = 2_000  # bytes
LARGEST_VERIFIED = 64 * 2**20  # bytes read for a look at a page

VERIFIED, MISMATCH, MISSING, UNREADABLE, LARGE = "verified", "mismatch", "missing", "unreadable", "large"


@dataclass(frozen=True, slots=True)
class PointerView:
    """Where in the body it stands, how it begins, and what was found: verified, mismatch, missing, unreadable (the
    store is down), or large (not read for this)."""

    path: str
    pointer: Pointer
    preview: str
    state: str
    fault: str = ""


def pointers_in(value: Any, path: str = "") -> Iterator[tuple[str, Pointer]]:
    """Payloads are offloaded as whole top-level values; a result may bring its own one level down."""
    if isinstance(value, Pointer):
        yield path, value
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from pointers_in(item, f"{path}.{name}" if path else str(name))


def views_of(body: dict[str, Any]) -> list[PointerView]:
    return [view(path, pointer) for path, pointer in pointers_in(body)]


def view(path: str, pointer: Pointer) -> PointerView:
    try:
        if pointer.size > LARGEST_VERIFIED:
            return PointerView(path, pointer, text_of(payload_store().preview(pointer, PREVIEW)), LARGE)
        data = payload_store().open(pointer)
    except PayloadMissing as error:
        return PointerView(path, pointer, "", MISSING, str(error))
    except PayloadAltered as error:
        return PointerView(path, pointer, "", MISMATCH, str(error))
    except PayloadError as error:
        return PointerView(path, pointer, "", UNREADABLE, str(error))
    return PointerView(path, pointer, text_of(data[:PREVIEW]), VERIFIED)


def text_of(data: bytes) -> str:
    return data.decode("utf-8", "backslashreplace")


def payload_answer(run: Run, seq: int, sha256: str, *, shown: bool = False) -> HttpResponseBase:
    """The stored bytes as a download; never shown as a page of this site, whatever they are. `shown`: as a picture, if
    that is what they are."""
    entry = read_entry(connection, run.id, seq)
    pointer = next((p for _, p in pointers_in(entry.body) if p.sha256 == sha256), None) if entry else None
    if pointer is None:
        raise Http404("There is no such payload.")
    if shown and is_picture(pointer):
        data = payload_store().open(pointer)
        answer = HttpResponse(data, content_type=picture_type(data[:16]))
        answer["Cache-Control"] = "private, max-age=3600"  # its address has its hash
        answer["X-Content-Type-Options"] = "nosniff"
        return answer
    answer = HttpResponse(payload_store().open(pointer), content_type="application/octet-stream")
    answer["Content-Disposition"] = f'attachment; filename="{seq}-{sha256[:12]}"'
    answer["X-Content-Type-Options"] = "nosniff"
    return answer
