"""One entry, whole: its payload, its pointers, its place in the hash chain."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.db import connection
from django.http import Http404, HttpResponse
from django.http.response import HttpResponseBase

from journal.chain import entry_digest, payload_digest
from journal.encoding import Pointer
from journal.entries import Entry
from journal.errors import PayloadError
from journal.payloads import payload_store
from journal.read import read_entry
from journal.verify import VerifiedMark, verify_from_mark
from runs import values
from runs.models import Run
from runs.slots import Signal, Slot
from runs.state import RunState

PREVIEW = 2_000  # bytes
PROOF = "SELECT salt, link, body FROM journal_entry WHERE run_id = %s AND seq = %s"


@dataclass(frozen=True, slots=True)
class PointerView:
    """A payload kept outside the entry: where in the body it stands, how it begins, or why it cannot be read."""

    path: str
    pointer: Pointer
    preview: str
    fault: str


@dataclass(frozen=True, slots=True)
class EntryPage:
    """`digest` and `link` in hex; `link` is empty when it stands in a later entry of the same append."""

    entry: Entry
    slot: Slot | None
    signal: Signal | None
    body: list[values.Node]
    pointers: list[PointerView]
    digest: str
    link: str
    mark: VerifiedMark

    @property
    def verified(self) -> bool:
        return self.entry.seq <= self.mark.seq

    @property
    def cells(self) -> list[str]:
        """The partial for this kind, by its file name."""
        own = [] if self.entry.is_beyond else [f"runs/entry/{self.entry.kind}.html"]
        return [*own, "runs/entry/other.html"]


def entry_page(run: Run, state: RunState, seq: int) -> EntryPage | None:
    entry = read_entry(connection, run.id, seq)
    if entry is None:
        return None
    digest, link = proof_of(entry)
    return EntryPage(
        entry,
        state.slots.get(entry.step) if entry.step is not None else None,
        next((signal for signal in state.signals if signal.seq == entry.seq), None),
        values.nodes(entry.body),
        [view(path, pointer) for path, pointer in pointers_in(entry.body)],
        digest.hex(),
        link.hex(),
        verify_from_mark(run.id),
    )


def proof_of(entry: Entry) -> tuple[bytes, bytes]:
    """The digest of an entry, made from what is stored, and its stored link."""
    with connection.cursor() as cursor:
        cursor.execute(PROOF, (entry.run_id, entry.seq))
        salt, link, body = (bytes(part) if part is not None else b"" for part in cursor.fetchone())
    # An erased body keeps its digest in place of the text and the salt that it was taken over.
    payload = payload_digest(salt, body) if salt else bytes.fromhex(entry.body["digest"])
    return entry_digest(entry.kind, entry.v, entry.step, entry.settles, entry.epoch, entry.actor, payload), link


def pointers_in(value: Any, path: str = "") -> Iterator[tuple[str, Pointer]]:
    """Payloads are offloaded as whole top-level values; a result may bring its own one level down."""
    if isinstance(value, Pointer):
        yield path, value
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from pointers_in(item, f"{path}.{name}" if path else str(name))


def view(path: str, pointer: Pointer) -> PointerView:
    try:
        data = payload_store().preview(pointer, PREVIEW)
    except PayloadError as error:
        return PointerView(path, pointer, "", str(error))
    return PointerView(path, pointer, data.decode("utf-8", "backslashreplace"), "")


def payload_answer(run: Run, seq: int, sha256: str) -> HttpResponseBase:
    """The stored bytes as a download; never shown as a page of this site, whatever they are."""
    entry = read_entry(connection, run.id, seq)
    pointer = next((p for _, p in pointers_in(entry.body) if p.sha256 == sha256), None) if entry else None
    if pointer is None:
        raise Http404("There is no such payload.")
    answer = HttpResponse(payload_store().open(pointer), content_type="application/octet-stream")
    answer["Content-Disposition"] = f'attachment; filename="{seq}-{sha256[:12]}"'
    answer["X-Content-Type-Options"] = "nosniff"
    return answer
