"""The API of tokens and money."""

from __future__ import annotations

from datetime import UTC, date, timedelta

from django.db import connection
from django.http import HttpRequest
from django.utils import timezone
from ninja import Query, Router
from pydantic import BaseModel, Field

from runs.access import VIEW, agents_of
from runs.guards import may
from runs.rest.schemas import Given, Name, problems
from runs.spending import Spending, spending_of

router = Router(tags=["spending"])
USUAL = timedelta(days=29)


class SpendingAsked(Given):
    since: date | None = Field(None, description="A day in UTC, which is in it. Default: 29 days before `until`.")
    until: date | None = Field(None, description="The last day. Default: today in UTC.")
    agent: Name | None = None


class SpendingOut(BaseModel):
    day: date
    agent: str
    release: str
    model: str = Field(description="As a request names it; empty where a function was asked.")
    requests: int = Field(description="Answered ones. Those that failed are not counted.")
    unpriced: int = Field(description="Answers of which nobody knows what they cost: they are not in `cost`.")
    input_tokens: int
    output_tokens: int
    cached_tokens: int = Field(description="Of the input tokens, those that a provider's cache held.")
    cost: float
    lost: int = Field(description="Requests whose worker was lost before their answer was written.")
    lost_unpriced: int
    lost_cost: float = Field(description="What the lost ones may have cost at most, beside `cost`.")


class SpendingList(BaseModel):
    items: list[SpendingOut]
    next_cursor: str | None = None


@router.get("/spending", auth=may(VIEW), response={200: SpendingList, **problems()})
def spending(request: HttpRequest, asked: Query[SpendingAsked]) -> SpendingList:
    """What models used, by day, agent, release and model."""
    until = asked.until or timezone.now().astimezone(UTC).date()
    since = asked.since or max(until, date.min + USUAL) - USUAL
    with connection.cursor() as cursor:
        found = spending_of(cursor, since, until, agents_of(request.user))
    return SpendingList(items=[as_told(one) for one in found if asked.agent in (None, one.agent)])


def as_told(one: Spending) -> SpendingOut:
    total = one.sum
    return SpendingOut(
        day=one.day, agent=one.agent, release=one.release, model=one.model, requests=total.requests,
        unpriced=total.unpriced, input_tokens=total.input_tokens, output_tokens=total.output_tokens,
        cached_tokens=total.cached_tokens, cost=float(total.cost), lost=total.lost, lost_unpriced=total.lost_unpriced,
        lost_cost=float(total.lost_cost),
    )  # fmt: skip
