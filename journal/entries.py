"""The words of the journal: kinds, entries to be appended, entries as read."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple
from uuid import UUID

from journal.chain import SALT_BYTES, payload_digest
from journal.encoding import encode


class Kind(StrEnum):
    START = "START"
    PLAN = "PLAN"
    TOOL_CALL = "TOOL_CALL"
    ATTEMPT = "ATTEMPT"
    OBS = "OBS"
    ERROR = "ERROR"
    APPROVAL = "APPROVAL"
    RECONCILE = "RECONCILE"
    ASK = "ASK"
    ANSWER = "ANSWER"
    TIMER = "TIMER"
    SIGNAL = "SIGNAL"
    CHILD = "CHILD"
    PIN = "PIN"
    CONTROL = "CONTROL"
    NOTE = "NOTE"
    DONE = "DONE"


# A decision made before one of these came is refused. The SQL function journal_is_steering() has the same list.
STEERING: frozenset[str] = frozenset(
    {Kind.SIGNAL, Kind.ANSWER, Kind.APPROVAL, Kind.RECONCILE, Kind.CONTROL, Kind.PIN, Kind.CHILD}
)


# What this code knows: each kind, and the newest version of its body's shape. Whoever raises one adds the upcaster from
# the version before (journal/upcasters.py). Version 2 of START and CONTROL tells of forks: who does not know them would
# not look at what relatives have done, and may drive no run that has any.
VERSIONS: dict[str, int] = dict.fromkeys(map(str, Kind), 1) | {"START": 2, "CONTROL": 2}
# Of those, what is written by default: most say nothing new, and older workers go on with them.
WRITTEN: dict[str, int] = {"START": 1, "CONTROL": 1}


@dataclass(slots=True)
class Draft:
    """An entry to be appended. A decision is refused when a steering entry came after what the append had `seen`.

    `data` is the encoded body, if its maker has it already. `v` 0 stands for the version that is written by default.
    """

    kind: str
    body: dict[str, Any]
    step: int | None = None
    settles: int | None = None
    decision: bool = False
    actor: str = "worker"
    v: int = 0
    data: bytes | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if not self.v:
            self.v = WRITTEN.get(self.kind) or VERSIONS.get(self.kind, 1)


@dataclass(slots=True)
class Entry:
    """An entry as read: `v` as stored, the body lifted to the newest version that this code knows.

    The body of an erased one is {"$": "erased", "digest": …}.
    """

    run_id: UUID
    seq: int
    kind: str
    v: int
    step: int | None
    settles: int | None
    epoch: int
    actor: str
    recorded_at: datetime
    body: dict[str, Any]

    @property
    def is_beyond(self) -> bool:
        """This code may not act on a journal that has it: its version is newer, or its kind unknown and critical."""
        known = VERSIONS.get(self.kind)
        return self.body.get("critical") is True if known is None else self.v > known


def seal(drafts: Sequence[Draft]) -> list[tuple[bytes, bytes, bytes]]:
    """Salt, payload digest and encoded body of each."""
    salts = os.urandom(SALT_BYTES * len(drafts))
    sealed = []
    for n, draft in enumerate(drafts):
        salt = salts[n * SALT_BYTES : (n + 1) * SALT_BYTES]
        body = encode(draft.body) if draft.data is None else draft.data
        sealed.append((salt, payload_digest(salt, body), body))
    return sealed


class Answer(NamedTuple):
    """What an append was answered: written, already, refused, settled, lost, or "no such run".

    `first_seq` and `last_seq` are the entries it wrote (for a refused one its outcome), None if it wrote none.
    """

    run_id: UUID
    verdict: str
    first_seq: int | None = None
    last_seq: int | None = None
    recorded_at: datetime | None = None
