"""Sentences about what waits for a person: who may decide, how far it has come, what happens if nobody does."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.utils import timezone

from runs.pages.zones import time_text
from runs.policies import Policy
from runs.slots import Approval

WEIGHTY = re.compile(r"amount|total|price|sum|_cents$", re.IGNORECASE)
EFFECTS = {
    "read": "nothing outside changes",
    "keyed": "the other side de-duplicates by the key",
    "probed": "the other side can be asked by the key, and does not de-duplicate",
    "unkeyed": "the other side knows no key: sent twice, it acts twice",
}
LOOKING = {
    "read": "A worker reads it again where no answer comes.",
    "keyed": "Where no answer comes, a worker asks the tool if it can be asked, or sends it again under the same key.",
    "probed": "Where no answer comes, a worker asks the tool by key, and sends it again only if it is not there.",
    "unkeyed": "It is not sent again: where no answer comes, a person is asked what happened.",
}
OUTCOMES = {
    "succeeded": "It happened", "failed": "It failed", "denied": "It was rejected", "expired": "It expired",
    "cancelled": "It was withdrawn",
}  # fmt: skip


def clock(at: datetime) -> str:
    return f"{time_text(at, timezone.now())} UTC"


def who_may_sign(policy: Policy, asked_by: str) -> str:
    """Any approver except olga, who asked."""
    one = policy.quorum == 1
    if policy.group == "approver":
        said = "Any approver" if one else f"Any {policy.quorum} approvers"
    else:
        said = f"Any member of {policy.group}" if one else f"Any {policy.quorum} members of {policy.group}"
    return f"{said} except {asked_by}, who asked" if policy.four_eyes and asked_by else said


def standing(approval: Approval) -> str:
    """1 of 2 granted: ada at 14:09:02 UTC."""
    if not approval.grants:
        return f"0 of {approval.policy.quorum} granted"
    told = ", ".join(f"{grant.actor} at {clock(grant.at)}" for grant in approval.grants)
    return f"{len(approval.grants)} of {approval.policy.quorum} granted: {told}"


def if_nobody_answers(approval: Approval, agent: str) -> str:
    if approval.expires is None:
        return "It does not expire. Nothing is sent until someone decides."
    if approval.policy.on_expiry == "deny":
        return f"The request expires, nothing is sent, and {agent} is told."
    return "The request expires, nothing is sent, and the run stays parked until someone asks for approval anew."


def weight_of(name: str, value: Any) -> str:
    """What an amount in minor units comes to: 240.00 for amount_cents=24000. Nothing for anything else."""
    if name.endswith("_cents") and type(value) is int and abs(value) < 10**15:
        return f"{'-' if value < 0 else ''}{abs(value) // 100:,}.{abs(value) % 100:02}"
    return ""


def is_weighty(name: str) -> bool:
    """Whether the eye should fall on it first: an amount."""
    return WEIGHTY.search(name) is not None


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """The names whose values differ, in the order of `after`."""
    names = [*after, *(name for name in before if name not in after)]
    return [name for name in names if (name in before) != (name in after) or before.get(name) != after.get(name)]
