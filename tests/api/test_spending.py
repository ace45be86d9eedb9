"""GET /spending: what models used, by day, agent, release and model."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from runs.access import set_scope
from tests.api.conftest import Cast
from tests.pages.test_spending import spent

pytestmark = pytest.mark.django_db(transaction=True)


def test_spending_is_told_by_day_agent_and_model(cast: Cast) -> None:
    spent()
    spent(cost=None)
    spent("triage", ago=40, cost="2.5")
    today = datetime.now(UTC).date()
    told = cast("victor").get("/spending").json()
    assert told == {"next_cursor": None, "items": [{
        "day": f"{today}", "agent": "support", "release": "r", "model": "anthropic:claude-haiku-4-5", "requests": 2,
        "unpriced": 1, "input_tokens": 2_000, "output_tokens": 400, "cached_tokens": 1_800, "cost": 0.0123, "lost": 0,
        "lost_unpriced": 0, "lost_cost": 0.0,
    }]}  # fmt: skip
    since = today - timedelta(days=60)
    (old,) = cast("victor").get(f"/spending?since={since}&agent=triage").json()["items"]
    assert (old["agent"], old["cost"]) == ("triage", 2.5)
    assert cast("victor").get(f"/spending?since={since}&until={since}").json()["items"] == []


def test_spending_of_agents_out_of_scope_is_not_told(cast: Cast) -> None:
    spent()
    set_scope("victor", ["another"], actor="test")
    assert cast("victor").get("/spending").json()["items"] == []
    assert cast("max").get("/spending").json()["items"] != []


def test_a_day_that_is_none_is_refused(cast: Cast) -> None:
    assert cast("victor").get("/spending?since=yesterday").status_code == 422
    for days in ("since=0001-01-01", "until=0001-01-01", "since=9999-12-31&until=9999-12-31"):
        assert cast("victor").get(f"/spending?{days}").status_code == 200, days
