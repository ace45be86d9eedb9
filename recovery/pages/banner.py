"""What every page says of the drains in force."""

from __future__ import annotations

from collections.abc import Sequence

from django.urls import reverse

from recovery.models import Drain
from runs.access import Person
from runs.gates import gates_seen
from runs.pages.conditions import Condition


def drains_in_force(user: Person | None) -> Sequence[Condition]:
    """Those that may stop runs which this one sees, the newest first."""
    open_ones = Drain.objects.filter(gate__in=gates_seen(user)).select_related("gate").order_by("-id")
    return [
        Condition(
            "draining", f"Draining {drain.scope}", drain.reason, drain.created_at, drain.owner,
            reverse("recovery:drain", args=[drain.pk]), "Watch", gate=drain.gate_id,
        )
        for drain in open_ones
    ]  # fmt: skip
