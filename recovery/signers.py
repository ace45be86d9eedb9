"""Whether enough people are left who may sign a call: four eyes leave out who started the run or changed it."""

from __future__ import annotations

from collections.abc import Collection

from django.contrib.auth.models import User
from django.db.models import Exists, OuterRef, Q

from recovery.items import ItemPage
from runs.access import APPROVE
from runs.consent import ADMIN
from runs.models import AgentScope
from runs.trees import started_by

MOST = 1_000  # people who are looked at


def too_few(page: ItemPage, editor: str = "") -> str:
    """The sentence for a quorum that cannot be reached any more; nothing where it can.

    `editor`: as if this person had changed the arguments, which voids what was granted.
    """
    approval = page.slot.approval
    if approval is None or not approval.open:
        return ""
    policy, barred = approval.policy, set()
    if policy.four_eyes:
        barred = {page.state.started_by, started_by(page.run.id), *page.slot.editors, *([editor] if editor else ())}
    able = sorted({*signers(policy.group, page.run.agent), *([] if editor else approval.granted_by)} - barred)
    if len(able) >= policy.quorum:
        return ""
    who = "nobody" if not able else ", ".join(able)
    are = "is" if len(able) < 2 else "are"
    return (
        f"{policy.quorum} {'people have' if policy.quorum > 1 else 'person has'} to sign, and {who} {are} left who "
        "may: not those who started the run or changed its arguments. An administrator can let somebody else approve; "
        "until then it can only be rejected."
    )


def signers(group: str, agent: str) -> Collection[str]:
    """The names of those whose role lets them sign for this group a call of this agent."""
    codename = APPROVE.partition(".")[2]
    scopes = AgentScope.objects.filter(user=OuterRef("pk"))
    may = Q(is_superuser=True) | Q(groups__permissions__codename=codename) | Q(user_permissions__codename=codename)
    people = User.objects.filter(may, is_active=True).filter(
        Q(is_superuser=True) | Q(groups__name__in=[group, ADMIN]),
        ~Exists(scopes) | Exists(scopes.filter(agent=agent)),
    )
    return people.values_list("username", flat=True).distinct()[:MOST]
