"""What people say about a call that waits for approval. Who they are and what they belong to comes from their login."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.models import AnonymousUser, User
from django.db import connection

from journal.payloads import payload_store
from journal.read import read_entries
from runs import consent
from runs.commands import Held, fresh, locked_run, wake
from runs.engine.projections import intent_record
from runs.engine.rules import waits_for_approval
from runs.models import Run
from runs.slots import Slot
from runs.state import fold
from runs.texts import plain_text
from runs.trees import started_by

SHELL_GROUPS = frozenset({consent.ADMIN})  # who has a shell on the machine can do anything anyway


def groups_of(user: AbstractBaseUser | AnonymousUser) -> frozenset[str]:
    """The names of the groups that the signed-in user is in. A superuser administers."""
    if not isinstance(user, User):
        return frozenset()
    more = {consent.ADMIN} if user.is_superuser and user.is_active else set()
    return frozenset(user.groups.values_list("name", flat=True)) | more


def decide_approval(
    *,
    run_id: UUID,
    seq: int,
    verdict: str,
    digest: str,
    note: str,
    actor: str,
    groups: frozenset[str],
    args: Mapping[str, Any] | None = None,
) -> Run:
    """approve, deny, edit or ask, under the digest that was seen. One grant an approver; the one that completes the
    policy's quorum, or a denial, is the decision.

    edit: `args` in place of the agent's, before the first attempt; all that was granted is void, and a worker asks for
    approval anew. ask: a question back; until it is answered the call can only be denied. Neither needs the agent's
    code here.

    Raises VerdictUnknown, IntentNotFound, ApprovalExpired, AlreadyDecided, RunEnded, NotAwaitingApproval,
    NotYourApproval, FourEyes, DigestMissing, DigestMismatch, QuestionOpen, ReasonMissing, EditTooLate, EditInvalid.
    """
    said = consent.Said(verdict, actor, groups, digest, note or "", args)
    with locked_run(run_id, even_ended=True) as held:
        slot = held.intent(seq)
        consent.refuse_decided(slot, said, database_now())
        held.refuse_if_ended()
        consent.refuse(slot, said, held.state.askers | {started_by(run_id)})
        decides = consent.is_decision(slot, said)
        entries = consent.entries(slot, said, contract_of(held, slot))
        for entry in entries:
            entry.body = payload_store().offload(run_id, entry.body)
        held.append(entries, actor)
        if decides:
            wake(held, f"{consent.VERDICTS[verdict]} by {actor}")
        else:
            tell_anew(held, seq)
    return fresh(run_id)


def answer_question(*, run_id: UUID, seq: int, text: str, actor: str) -> Run:
    """Answers what an approver asked back about the intent `seq`; then it can be approved again.

    Raises IntentNotFound, RunEnded, NoQuestionOpen, ReasonMissing.
    """
    with locked_run(run_id) as held:
        slot = held.intent(seq)
        held.append([consent.answer(slot, text or "")], actor)
        tell_anew(held, seq)
    return fresh(run_id)


def contract_of(held: Held, slot: Slot) -> Mapping[str, Any]:
    tools: list[dict[str, Any]] = held.run.release.contract.get("tools", [])
    return next((tool for tool in tools if tool["name"] == slot.tool), {})


def tell_anew(held: Held, seq: int) -> None:
    """The parked run's row says what was said. It is not woken: nothing is to be done yet."""
    if held.driven:
        return
    state = fold(held.run.id, read_entries(connection, held.run.id))
    slot = next(slot for slot in state.slots.values() if slot.seq == seq)
    assert slot.approval is not None
    told = [
        intent_record(slot, listed.get("reminders", 0), listed.get("asked_by", "")) if listed["seq"] == seq else listed
        for listed in held.run.intents
    ]
    changes: dict[str, Any] = {"intents": told}
    if len(told) == 1 and held.run.status == "awaiting_approval":
        changes["reason"] = plain_text(waits_for_approval(slot, slot.approval))
    Run.objects.filter(id=held.run.id).update(**changes)


def database_now() -> float:
    with connection.cursor() as cursor:
        cursor.execute("SELECT extract(epoch FROM clock_timestamp())::float8")
        return float(cursor.fetchone()[0])
