"""An order of a fork that names itself: sent twice, by a second click or after a lost answer, it is one fork.

The name stands in the journal of the source, in the append that tells of the fork, so it is written with it or not at
all. It has the source's id in it: a copy of that entry in the journal of a fork is no request of the fork's.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import connection

from journal.encoding import canonical
from journal.read import read_request
from recovery.errors import ForkRequestTaken
from runs.errors import BadInput
from runs.models import Run
from runs.starting import LONGEST_KEY
from runs.texts import is_writable


@dataclass(frozen=True, slots=True)
class ForkRequest:
    """`id`: what the append goes under, None for an order without a name. `digest`: of what was ordered."""

    source: UUID
    id: str | None
    digest: str

    @classmethod
    def of(
        cls, source: UUID, name: str | None, at: int, reason: str, actor: str, release: str | None,
        edits: Sequence[Mapping[str, Any]],
    ) -> ForkRequest:  # fmt: skip
        """`edits`: sealed where that is declared. Raises BadInput."""
        if name is None:
            return cls(source, None, "")
        if not 0 < len(name) <= LONGEST_KEY or not is_writable(name):
            raise BadInput(f"The request_id of a fork has 1 to {LONGEST_KEY} characters of whole Unicode text.")
        ordered = {"at": at, "reason": reason, "by": actor, "release": release, "edits": [dict(edit) for edit in edits]}
        return cls(source, f"fork {source} {name}", hashlib.sha256(canonical(ordered)).hexdigest())

    @property
    def told(self) -> dict[str, Any]:
        """What the source's entry says of it."""
        return {} if self.id is None else {"request_digest": self.digest}

    def fork(self) -> Run | None:
        """What was made of it already. Raises ForkRequestTaken if that was another order."""
        if self.id is None or (entry := read_request(connection, self.source, self.id)) is None:
            return None
        if entry.body.get("request_digest") != self.digest:
            raise ForkRequestTaken(entry.body.get("fork"), entry.actor, entry.recorded_at)
        return Run.objects.select_related("release", "session").get(id=entry.body["fork"])
