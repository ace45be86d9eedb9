"""What the pages around the console's own say."""

from __future__ import annotations

from collections.abc import Iterable

from django import template

from runs.access import ROLES
from runs.pages.conditions import Condition

register = template.Library()


@register.filter
def roles_that_may(permission: object) -> list[str]:
    """The roles that have this permission; none where it is no permission of ours."""
    return [role for role, codes in ROLES.items() if str(permission) in codes]


@register.filter
def of_gate(lines: Iterable[Condition], gate_id: int) -> Condition | None:
    """The operation that the gate belongs to, of the page's conditions; None for a gate that stands for itself."""
    return next((line for line in lines if line.gate == gate_id and line.look != "held"), None)
