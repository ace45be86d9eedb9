"""Files as evidence: kept beside the journal like every large payload, named in the entry that they go with."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from journal.payloads import payload_store
from recovery.errors import FileTooLarge
from runs.values import AWKWARD

LARGEST = 10 * 1024 * 1024  # bytes
LONGEST_NAME = 200
TYPE = re.compile(r"[a-z0-9!#$&^_.+-]{1,80}/[a-z0-9!#$&^_.+-]{1,80}", re.IGNORECASE)
PLAIN = "application/octet-stream"


@dataclass(frozen=True, slots=True)
class EvidenceFile:
    """`name` and `type` as whoever gave it says: they are shown and never trusted."""

    name: str
    type: str
    content: bytes


def kept(run_id: UUID, file: EvidenceFile) -> dict[str, Any]:
    """What the entry says of it: name, type, size, sha256, and where it is. Raises FileTooLarge, PayloadStoreDown."""
    if len(file.content) > LARGEST:
        raise FileTooLarge(f"This one has {len(file.content):,}.")
    pointer = payload_store().put(run_id, file.content)
    return {
        "name": plain_name(file.name),
        "type": file.type if TYPE.fullmatch(file.type) else PLAIN,
        "size": pointer.size,
        "sha256": pointer.sha256,
        "content": pointer,
    }


def plain_name(name: str) -> str:
    """Without folders and without what a header or a page could stumble over."""
    last = re.split(r"[/\\]", name)[-1]
    return AWKWARD.sub("", last).replace("\n", " ").replace("\t", " ").strip()[:LONGEST_NAME] or "evidence"
