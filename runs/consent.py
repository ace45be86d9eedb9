"""Deciding an approval: who may say what, and what is written. Pure: for the command, and for tests in memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from journal.encoding import problems, tagged
from journal.entries import Draft, Kind
from journal.tags import Sealed
from runs.answer_types import SchemaRefused, faults_of
from runs.errors import (
    AlreadyDecided,
    ApprovalExpired,
    DigestMismatch,
    DigestMissing,
    EditInvalid,
    EditTooLate,
    FourEyes,
    NoQuestionOpen,
    NotAwaitingApproval,
    NotYourApproval,
    QuestionOpen,
    ReasonMissing,
    VerdictUnknown,
)
from runs.secrets import opened, sealed_by
from runs.slots import Approval, Slot
from runs.texts import said_text

VERDICTS = {"approve": "granted", "deny": "denied", "edit": "edited", "ask": "asked"}
ADMIN = "admin"  # may decide for any group
LONGEST_NOTE = 10_000


@dataclass(frozen=True, slots=True)
class Said:
    """What somebody says about an approval. `groups` and `actor` are from the login."""

    verdict: str
    actor: str
    groups: frozenset[str]
    digest: str = ""
    note: str = ""
    args: Mapping[str, Any] | None = None


def refuse_decided(slot: Slot, said: Said, now: float) -> None:
    """Raises for who comes late: they learn who decided what and when, though the run may be over. `now`: POSIX."""
    if said.verdict not in VERDICTS:
        raise VerdictUnknown(f"{said.verdict!r}; there are {', '.join(VERDICTS)}.")
    approval = slot.approval
    if approval is None:
        return
    if approval.verdict == "expired":
        raise ApprovalExpired(at_of(approval))
    if not approval.open:
        raise AlreadyDecided(approval.actor, approval.verdict, approval.at)
    for grant in approval.grants:
        if grant.actor == said.actor and said.verdict == "approve":
            raise AlreadyDecided(grant.actor, "granted", grant.at)
    if approval.expires is not None and approval.expires <= now and not slot.settled:
        raise ApprovalExpired(at_of(approval))


def refuse(slot: Slot, said: Said, started_by: frozenset[str]) -> Approval:
    """Raises for what this person may not say about this call. `started_by`: who started the run and its tree."""
    approval = slot.approval
    if approval is None or slot.settled:
        raise NotAwaitingApproval
    policy = approval.policy
    if policy.group not in said.groups and ADMIN not in said.groups:
        raise NotYourApproval(policy.group)
    if policy.four_eyes and said.verdict == "approve":
        if said.actor in started_by:
            raise FourEyes(f"{said.actor} started this run.")
        if said.actor in slot.editors:
            raise FourEyes(f"{said.actor} changed the arguments.")
    if not said.digest:
        raise DigestMissing
    if said.digest != approval.digest:
        raise DigestMismatch(approval.digest)
    if approval.question is not None and said.verdict != "deny":
        raise QuestionOpen(approval.question.by, approval.question.text, approval.question.at)
    if said.verdict in ("deny", "ask") and not said_text(said.note):
        raise ReasonMissing
    if said.verdict == "edit" and slot.sent is not None:
        raise EditTooLate(slot.sent.at)
    return approval


def entries(slot: Slot, said: Said, contract: Mapping[str, Any]) -> list[Draft]:
    """What a permitted verdict writes. `contract`: the tool's, of the release that the run is pinned to."""
    body: dict[str, Any] = {"verdict": VERDICTS[said.verdict], "digest": said.digest, "note": said.note[:LONGEST_NOTE]}
    if said.verdict == "edit":
        body["args"] = checked_args(slot, said.args, contract)
    written = [Draft(Kind.APPROVAL, body, step=slot.step)]
    if said.verdict == "deny":
        why: dict[str, Any] = {"outcome": "denied", "error": body["note"], "source": "operator"}
        if slot.edited is not None:
            why["edited"] = slot.edited.record
        written.append(Draft(Kind.OBS, why, step=slot.step, settles=slot.step))
    return written


def is_decision(slot: Slot, said: Said) -> bool:
    """Whether a worker has to act on it: an incomplete quorum and a question back only change what is shown."""
    assert slot.approval is not None
    completes = len(slot.approval.grants) + 1 >= slot.approval.policy.quorum
    return said.verdict in ("deny", "edit") or (said.verdict == "approve" and completes)


def checked_args(slot: Slot, args: Mapping[str, Any] | None, contract: Mapping[str, Any]) -> dict[str, Any]:
    """As they are written: what the tool takes as a secret is sealed, and stays as it is where nobody gave another.

    Raises EditInvalid, naming each field.
    """
    if args is None:
        raise EditInvalid({"args": "Give the whole arguments as an object."})
    if lost := problems(dict(args), "args"):
        raise EditInvalid({lost[0]: "It is of a type that the journal cannot keep."})
    recorded = slot.args if isinstance(slot.args, Mapping) else {}  # kept elsewhere, because it is large
    kept = {name: value for name, value in recorded.items() if isinstance(value, Sealed)}
    whole = dict(args) | {n: v for n, v in kept.items() if args.get(n) is None or args[n] == tagged(v)}
    schema = contract.get("parameters") or {}
    try:
        faults = faults_of(schema, opened(whole))
    except SchemaRefused as error:
        raise EditInvalid({"args": f"The tool's schema cannot be judged by: {error}."}) from error
    if faults:
        raise EditInvalid({".".join(("args", *map(str, fault.path))): f"{fault.message}." for fault in faults})
    sealed: dict[str, Any] = sealed_by(schema, whole)
    return sealed


def answer(slot: Slot, text: str) -> Draft:
    """The entry that answers the open question. Raises ReasonMissing, NoQuestionOpen."""
    approval = slot.approval
    if approval is None or slot.settled or not approval.open or approval.question is None:
        raise NoQuestionOpen
    if not said_text(text):
        raise ReasonMissing
    body = {"verdict": "answered", "digest": approval.digest, "note": text.strip()[:LONGEST_NOTE],
            "question": approval.question.seq}  # fmt: skip
    return Draft(Kind.APPROVAL, body, step=slot.step)


def at_of(approval: Approval) -> datetime:
    return datetime.fromtimestamp(approval.expires or approval.at.timestamp(), UTC)
