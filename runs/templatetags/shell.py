"""What the pages around the console's own say."""

from __future__ import annotations

from django import template

from runs.access import ROLES

register = template.Library()


@register.filter
def roles_that_may(permission: object) -> list[str]:
    """The roles that have this permission; none where it is no permission of ours."""
    return [role for role, codes in ROLES.items() if str(permission) in codes]
