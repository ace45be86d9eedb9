"""The run row follows the journal: written in the append's own transaction, and only when a run is let go."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from psycopg import Connection

from journal.committer import Append
from runs.brakes import spent
from runs.slots import Approval, Slot
from runs.spending import SPEND_WITH, Spent, as_columns
from runs.state import RunState
from runs.texts import plain_text
from runs.trees import Newborn


@dataclass(frozen=True, slots=True)
class Park:
    """How a run is let go: status, why it does not move, when it wakes (POSIX seconds, 0: never by itself); the
    children that it waits for, all or any; as JSON, its open intents and the names of signals that it waits for."""

    status: str
    reason: str = ""
    wake: float = 0.0
    intents: str = "[]"
    awaits: tuple[UUID, ...] = ()
    awaits_any: bool = False
    signals: str = "[]"
    listed: str = "{}"  # what lists show of the run, as JSON: see `listing`
    release: str = ""  # that the journal pins it to, if that is another than its worker's: it is queued there

    def as_columns(self) -> Mapping[str, Any]:
        return {
            "status": self.status,
            "reason": plain_text(self.reason),
            "wake": self.wake,
            "intents": self.intents,
            "awaits": "{" + ",".join(map(str, self.awaits)) + "}",
            "any": self.awaits_any,
            "signals": self.signals,
            "listed": self.listed,
        }


@dataclass(frozen=True, slots=True)
class Then:
    """What goes with an append: children to be born, how the run is let go, and what models used."""

    park: Park | None = None
    children: Sequence[Newborn] = ()
    spent: Sequence[Spent] = ()


# Judged by the head, so that it needs no answer first. It changes nothing if the append was refused, or if a steering
# entry came before it that the worker has not read: then the worker keeps the run and reads on.
LET_GO_WITH = """
UPDATE runs_run r SET session_id = NULL, status = a.status, reason = a.reason, since = h.append_at,
       intents = a.intents::jsonb, as_of_seq = h.append_last_seq,
       wake_at = CASE WHEN a.awaits <> '{}' AND runs_joined_v1(a.awaits::uuid[], a.any) THEN clock_timestamp()
                      WHEN a.wake > 0 THEN to_timestamp(a.wake) END,
       awaits = a.awaits::uuid[], awaits_any = a.any, awaits_signals = a.signals::jsonb,
       at = coalesce(a.listed::jsonb->>'at', r.at), tokens = coalesce((a.listed::jsonb->>'tokens')::bigint, r.tokens),
       tools = CASE WHEN a.listed::jsonb ? 'tools'
                    THEN ARRAY(SELECT jsonb_array_elements_text(a.listed::jsonb->'tools')) ELSE r.tools END,
       cost = coalesce((a.listed::jsonb->>'cost')::float8, r.cost),
       region = coalesce(a.listed::jsonb->>'region', r.region),
       denials = coalesce((a.listed::jsonb->>'denials')::int, r.denials),
       doubts = coalesce((a.listed::jsonb->>'doubts')::int, r.doubts),
       person_acted = coalesce((a.listed::jsonb->>'person')::boolean, r.person_acted),
       ended_at = CASE WHEN a.status IN ('done', 'failed', 'cancelled') THEN h.append_at END
  FROM unnest(%(runs)b::uuid[], %(epochs)b::bigint[], %(numbers)b::bigint[], %(seens)b::bigint[], %(status)b::text[],
              %(reason)b::text[], %(wake)b::float8[], %(intents)b::text[], %(awaits)b::text[], %(any)b::bool[],
              %(signals)b::text[], %(listed)b::text[])
       AS a (run, epoch, number, seen, status, reason, wake, intents, awaits, "any", signals, listed)
  JOIN journal_head h ON h.run_id = a.run AND h.epoch = a.epoch AND h.last_append_no = a.number AND NOT h.append_refused
   AND (h.last_steering_seq <= a.seen OR h.last_steering_seq >= h.append_first_seq)
 WHERE r.id = a.run AND r.as_of_seq < h.append_last_seq
"""
SPAWN_WITH = """
SELECT runs_spawn_v1(a.run, a.step::int, a.id, a.agent, a.release, a.labels::jsonb, a.deadline, a.business, a.salt,
                     a.digest, a.body)
  FROM unnest(%(runs)b::uuid[], %(epochs)b::bigint[], %(numbers)b::bigint[], %(step)b::bigint[], %(id)b::uuid[],
              %(agent)b::text[], %(release)b::text[], %(labels)b::text[], %(deadline)b::float8[], %(business)b::text[],
              %(salt)b::bytea[], %(digest)b::bytea[], %(body)b::bytea[])
       AS a (run, epoch, number, step, id, agent, release, labels, deadline, business, salt, digest, body)
  JOIN journal_head h ON h.run_id = a.run AND h.epoch = a.epoch AND h.last_append_no = a.number AND NOT h.append_refused
"""


class RunsProjection:
    """The run rows' part in an append's transaction: children first, so that who waits for them finds them."""

    def statements(self, appends: Sequence[Append]) -> list[tuple[str, dict[str, Any]]]:
        born = [(append, child) for append in appends for child in then_of(append).children]
        going = [(append, park) for append in appends if (park := then_of(append).park) is not None]
        told: list[tuple[str, dict[str, Any]]] = []
        if born:
            rows = [child.as_columns() for _, child in born]
            told.append((SPAWN_WITH, of_appends([append for append, _ in born]) | columns(rows)))
        spends = [(append, one) for append in appends for one in then_of(append).spent]
        if spends:
            rows = [as_columns(one) for _, one in spends]
            told.append((SPEND_WITH, of_appends([append for append, _ in spends]) | columns(rows)))
        if going:
            rows = [park.as_columns() for _, park in going]
            of = of_appends([append for append, _ in going])
            told.append((LET_GO_WITH, of | columns(rows) | {"seens": [append.seen for append, _ in going]}))
        return told


def then_of(append: Append) -> Then:
    then: Then = append.then or Then()
    return then


def of_appends(appends: Sequence[Append]) -> dict[str, list[Any]]:
    return {
        "runs": [append.run_id for append in appends],
        "epochs": [append.epoch for append in appends],
        "numbers": [append.number for append in appends],
    }


def columns(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    return {name: [row[name] for row in rows] for name in rows[0]}


LET_GO = "SELECT runs_let_go_v4(%s, %s, %s, %s, %s, %s, %s::jsonb, %s::uuid[], %s, %s::jsonb, %s::jsonb)"

# The row follows the journal's last PIN. Head first.
MOVE = """
WITH head AS (SELECT run_id FROM journal_head WHERE run_id = %s AND epoch = %s FOR NO KEY UPDATE)
UPDATE runs_run r SET release_id = %s FROM head WHERE r.id = head.run_id
"""


def let_go(conn: Connection[Any], run_id: UUID, epoch: int, seen: int, park: Park) -> bool:
    """Let a run go without an append. False: it is not ours any more, or a steering entry came that was not read."""
    given = (run_id, epoch, seen, park.status, plain_text(park.reason), park.wake, park.intents,
             list(park.awaits), park.awaits_any, park.signals, park.listed)  # fmt: skip
    with conn.transaction():
        if park.release:
            conn.execute(MOVE, (run_id, epoch, park.release))
        row = conn.execute(LET_GO, given).fetchone()
    return bool(row and row[0])


def open_intents(state: RunState, reminders: Mapping[int, int] | None = None, asked_by: str = "") -> str:
    """The run row's list of what waits for somebody, as JSON: what the inbox shows without reading journals.

    `reminders`: how many there were, by step. `asked_by`: who started the run, or the root of its tree.
    """
    reminded = reminders or {}
    return json.dumps([
        intent_record(slot, reminded.get(slot.step, 0), asked_by or state.started_by)
        for slot in state.unsettled() if slot.kind in ("call", "ask")
    ])  # fmt: skip


def intent_record(slot: Slot, reminders: int = 0, asked_by: str = "") -> dict[str, Any]:
    """One unsettled call, or one question that an agent asks (`kind` "ask")."""
    asks = slot.kind == "ask"
    approval = slot.approval if slot.state == "awaiting_approval" else None
    since, due = slot.at, slot.due
    if approval is not None:
        since, due = approval.requested_at or approval.at, approval.expires
    elif slot.attempts:
        since = slot.attempts[-1].at
    summary = slot.body["question"] if asks else slot.summary
    return {
        "seq": slot.seq,
        "step": slot.step,
        "kind": slot.kind,
        "tool": slot.tool,
        "state": "asked" if asks else slot.state,
        "since": since.isoformat(),
        "deadline": datetime.fromtimestamp(due, UTC).isoformat() if due is not None else None,
        "attempt": len(slot.attempts),
        "effect": slot.effect,
        "key": slot.key,
        "digest": approval.digest if approval is not None else slot.digest,
        "summary": plain_text(str(summary)) if summary is not None else None,
        "asked_by": plain_text(asked_by),
        "reminders": reminders,
    } | of_approval(approval)


def of_approval(approval: Approval | None) -> dict[str, Any]:
    """Who has to agree and who has, what was asked back, whether it expired."""
    if approval is None:
        return {"policy": None, "granted": [], "question": None, "expired": False, "repeats": []}
    policy, asked = approval.policy, approval.question
    return {
        "policy": {"group": policy.group, "quorum": policy.quorum, "four_eyes": policy.four_eyes,
                   "on_expiry": policy.on_expiry},
        "granted": [plain_text(name) for name in approval.granted_by],
        "question": {"by": plain_text(asked.by), "text": plain_text(asked.text), "seq": asked.seq} if asked else None,
        "expired": approval.verdict == "expired",
        "repeats": [repeat.record for repeat in approval.repeats],
    }  # fmt: skip


def listing(state: RunState, region: str) -> str:
    """What lists show of the run beside its status, as JSON."""
    standing = next(iter(state.open.values()), None) or state.slots.get(len(state.slots))
    used, copied = spent(state, 0.0), state.copied  # what a fork copied is on the account of what it was forked from
    own = [slot for slot in state.slots.values() if slot.seq > state.copied_to]
    return json.dumps(
        {
            "at": plain_text(standing.tool) if standing is not None else "",
            "tools": sorted(map(plain_text, state.tools)),
            "tokens": round(used.tokens - copied.tokens),
            "cost": used.cost - copied.cost,
            "person": state.person_acted,
            "denials": sum(slot.outcome == "denied" for slot in own),
            "doubts": sum(slot.doubted or slot.in_doubt for slot in own),
            "region": region,
        }
    )
