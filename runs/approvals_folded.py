"""What the APPROVAL entries of a call come to. Pure."""

from __future__ import annotations

from journal.entries import Entry
from runs.policies import Policy
from runs.slots import Approval, Decider, Edit, Question, Repeat, Slot


def apply_approval(slot: Slot, e: Entry) -> None:
    b = e.body
    verdict, note, approval = b["verdict"], b.get("note") or "", slot.approval
    if verdict == "requested" or approval is None:
        _requested(slot, e)
        return
    match verdict:
        case "granted":
            if b.get("digest") != approval.digest or e.actor in approval.granted_by:
                return
            approval.grants.append(Decider(e.actor, e.recorded_at, e.seq, note))
            if len(approval.grants) < approval.policy.quorum:
                return
        case "asked":
            approval.question = Question(e.actor, note, e.seq, e.recorded_at)
            return
        case "answered":
            approval.question = None
            return
        case "edited":
            slot.edited = Edit(e.actor, b.get("args", {}), e.recorded_at, e.seq, note)
            slot.editors.append(e.actor)
            approval.grants.clear()
    approval.decide(verdict, e.seq, e.recorded_at, e.actor, note)


def _requested(slot: Slot, e: Entry) -> None:
    b = e.body
    if b.get("edit") == "refused":
        slot.edited = None
    slot.absent = bool(slot.attempts)  # nobody is asked about another send while one may have acted
    first = slot.approval is None
    slot.approval = Approval(
        b["verdict"], e.seq, e.recorded_at, e.actor, b.get("digest", ""), b.get("note") or "",
        requested_seq=e.seq, requested_at=e.recorded_at, policy=Policy.of(b.get("policy")),
        release=b.get("release", ""), expires=b.get("expires"), why=b.get("why", ""), first=first,
        fields=b.get("fields"),
        summary=b.get("summary"), repeats=tuple(map(Repeat.of, b.get("repeats", ()))),
    )  # fmt: skip
