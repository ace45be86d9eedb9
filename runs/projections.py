"""The run row follows the journal: written in the append's own transaction, and only when a run is let go."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from psycopg import Connection

from journal.committer import Append
from runs.state import RunState, Slot


@dataclass(frozen=True, slots=True)
class Park:
    """How a run is let go: status, why it does not move, when it wakes (POSIX seconds, 0: never by itself)."""

    status: str
    reason: str = ""
    wake: float = 0.0
    intents: str = "[]"

    def as_then(self) -> Mapping[str, Any]:
        return {"status": self.status, "reason": plain_text(self.reason), "wake": self.wake, "intents": self.intents}


LONGEST_TEXT = 2_000


def plain_text(text: str) -> str:
    """What a text column can keep: PostgreSQL refuses U+0000 and lone surrogates. The journal has the exact words."""
    return text[:LONGEST_TEXT].replace("\0", "\u2400").encode("utf-8", "replace").decode("utf-8")


class LetGo:
    """The projection that goes with an append: judged by the head, so that it needs no answer first.

    It changes nothing if the append was refused, or if a steering entry came before it that the worker has not read:
    then the worker keeps the run and reads on.
    """

    sql = """
UPDATE runs_run r SET session_id = NULL, status = a.status, reason = a.reason, since = h.append_at,
       intents = a.intents::jsonb, as_of_seq = h.append_last_seq,
       wake_at = CASE WHEN a.wake > 0 THEN to_timestamp(a.wake) END,
       ended_at = CASE WHEN a.status IN ('done', 'failed', 'cancelled') THEN h.append_at END
  FROM unnest(%(then_runs)b::uuid[], %(then_epochs)b::bigint[], %(then_numbers)b::bigint[], %(then_seens)b::bigint[],
              %(then_status)b::text[], %(then_reason)b::text[], %(then_wake)b::float8[], %(then_intents)b::text[])
       AS a (run, epoch, number, seen, status, reason, wake, intents)
  JOIN journal_head h ON h.run_id = a.run AND h.epoch = a.epoch AND h.last_append_no = a.number AND NOT h.append_refused
   AND (h.last_steering_seq <= a.seen OR h.last_steering_seq >= h.append_first_seq)
 WHERE r.id = a.run AND r.as_of_seq < h.append_last_seq
"""

    def arguments(self, appends: Sequence[Append]) -> dict[str, Any]:
        going = [(append, append.then) for append in appends if append.then]
        return {
            "then_runs": [append.run_id for append, _ in going],
            "then_epochs": [append.epoch for append, _ in going],
            "then_numbers": [append.number for append, _ in going],
            "then_seens": [append.seen for append, _ in going],
        } | {f"then_{name}": [then[name] for _, then in going] for name in ("status", "reason", "wake", "intents")}


LET_GO = "SELECT runs_let_go_v1(%s, %s, %s, %s, %s, %s, %s::jsonb)"


def let_go(conn: Connection[Any], run_id: UUID, epoch: int, seen: int, park: Park) -> bool:
    """Let a run go without an append. False: it is not ours any more, or a steering entry came that was not read."""
    given = (run_id, epoch, seen, park.status, plain_text(park.reason), park.wake, park.intents)
    row = conn.execute(LET_GO, given).fetchone()
    return bool(row and row[0])


def open_intents(state: RunState) -> str:
    """The run row's list of unsettled calls, as JSON: what the inbox shows without reading journals."""
    return json.dumps([intent_record(slot) for slot in state.unsettled() if slot.kind == "call"])


def intent_record(slot: Slot) -> dict[str, Any]:
    since = slot.at
    if slot.state == "awaiting_approval" and slot.approval is not None:
        since = slot.approval.at
    elif slot.attempts:
        since = slot.attempts[-1].at
    return {
        "seq": slot.seq,
        "step": slot.step,
        "tool": slot.tool,
        "state": slot.state,
        "since": since.isoformat(),
        "deadline": None,
        "attempt": len(slot.attempts),
    }
