"""What every page says of the drains in force."""

from __future__ import annotations

from collections.abc import Sequence

from django.urls import reverse

from recovery import drains
from recovery.models import Phase
from runs.access import Person, agents_of
from runs.pages.conditions import Condition


def drains_in_force(user: Person | None) -> Sequence[Condition]:
    """Those that may stop runs which this one sees, the newest first; those under way before those that are over."""
    found = sorted(drains.conditions(user), key=lambda one: not one.under_way)
    return [line_of(one, whole=agents_of(user) is None) for one in found]


def line_of(one: drains.Condition, *, whole: bool) -> Condition:
    drain = one.drain
    return Condition(
        look="draining",
        what=f"{'Draining' if one.under_way else 'Drained'} {drain.scope}",
        why=drain.reason,
        since=drain.created_at,
        actor=drain.owner,
        link=reverse("recovery:drain", args=[drain.pk]),
        act="Watch" if one.under_way else "Show",
        told=told(one, whole),
        until=drain.deadline_at if one.under_way else None,
        gate=drain.gate_id,
        name=drain.scope,
        left=one.remaining if one.under_way else None,
    )


def told(one: drains.Condition, whole: bool) -> str:
    if one.drain.phase == Phase.HANDED_OVER:
        return "its deadline has passed, what was left is handed over; its gate stands until it is lifted"
    if not one.under_way:
        return "no run is left in flight; its gate stands until it is lifted"
    if one.remaining is None:
        return "calls that are open may return"
    if not whole:
        return f"{one.remaining} run{'' if one.remaining == 1 else 's'} in flight"
    total = max(one.drain.in_flight, one.remaining)
    return f"{total - one.remaining} of {total} runs at a checkpoint"
