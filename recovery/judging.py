"""Whether this person may decide this item, and if not, why not: in words, before anybody tries."""

from __future__ import annotations

from dataclasses import dataclass

from recovery.inbox import allowed, may_answer
from recovery.items import ItemPage
from recovery.wording import clock
from runs.access import APPROVE, CONTROL, RECONCILE, Person
from runs.approvals import groups_of
from runs.consent import ADMIN
from runs.trees import started_by


@dataclass(frozen=True, slots=True)
class Judge:
    """The commands judge again: this only keeps buttons from promising what would be refused."""

    page: ItemPage
    user: Person

    @property
    def name(self) -> str:
        return self.user.get_username()

    @property
    def may_reconcile(self) -> bool:
        return allowed(self.user, RECONCILE)

    @property
    def may_answer(self) -> bool:
        return may_answer(self.user)

    @property
    def may_deny(self) -> bool:
        """Rejecting is for the policy's group, also for who asked for the run."""
        return not (self.stranger or self.expired or self.altered)

    @property
    def may_sign(self) -> bool:
        return not self.why_not

    @property
    def why_not(self) -> str:
        """Why this person cannot approve it; nothing if they can."""
        return self.stranger or self.altered or self.expired or self.two_eyes or self.waits

    @property
    def stranger(self) -> str:
        approval = self.page.slot.approval
        if not allowed(self.user, APPROVE):
            return "Approving needs the approver role."
        group = approval.policy.group if approval else "approver"
        groups = groups_of(self.user)
        if group not in groups and ADMIN not in groups:
            return f"Only members of {group} may sign this."
        return ""

    @property
    def two_eyes(self) -> str:
        approval, slot = self.page.slot.approval, self.page.slot
        if approval is None:
            return ""
        mine = next((grant for grant in approval.grants if grant.actor == self.name), None)
        if mine is not None:
            return f"You granted it at {clock(mine.at)}. Another person has to sign."
        if not approval.policy.four_eyes:
            return ""
        if self.name in self.page.state.askers | {started_by(self.page.run.id)}:
            return "You asked for this run, so you cannot approve it. Another person has to sign."
        if self.name in slot.editors:
            return "You edited its arguments, so you cannot approve it. Another person has to sign."
        return ""

    @property
    def expired(self) -> str:
        approval = self.page.slot.approval
        return "It has expired." if approval is not None and approval.verdict == "expired" else ""

    @property
    def may_renew(self) -> bool:
        return bool(self.expired) and allowed(self.user, CONTROL)

    @property
    def waits(self) -> str:
        approval = self.page.slot.approval
        if approval is not None and approval.question is not None:
            return f"It waits for the answer to the question of {approval.question.by}."
        return ""

    @property
    def altered(self) -> str:
        return (
            ""
            if self.page.proof.holds
            else "The journal of this run is not what was written. Nothing can be signed on it."
        )
