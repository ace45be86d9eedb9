"""What models used, by day, agent, release and model: a projection of the journals' PLANs, written with them.

A row for each request, in the transaction of its append, under (run, seq): a resend after a lost connection finds it
there, and no two appends wait for one counter. The sweep adds up the rows of days that are over, by one statement.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal, InvalidOperation
from typing import Any

from journal.entries import Draft, Kind
from runs.state import MODEL_ACTOR
from runs.texts import plain_text
from runs.usage import unpriced_in

MOST = 10**15  # a number beyond belief must not cost an answer its append
FOLDS_AFTER = 2  # days: no append is sent again as late as that
BATCH = 20_000


@dataclass(frozen=True, slots=True)
class Spent:
    """One request. `place`: which entry of its append says it; `kept_place`: which, where decisions were refused (None:
    it is one). `lost`: its answer never came, and this is what it may have used. `cost` None: nobody knows."""

    place: int
    kept_place: int | None
    agent: str
    release: str
    model: str
    lost: bool
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    cost: str | None


def spent_in(batch: Sequence[Draft], agent: str, release: str) -> list[Spent]:
    """What an append tells of requests to models."""
    found = []
    for place, draft in enumerate(batch):
        kept = None if draft.decision else sum(not before.decision for before in batch[:place])
        if draft.kind == Kind.PLAN and draft.actor == MODEL_ACTOR:
            told = of_answer(draft.body)
        elif draft.kind == Kind.ATTEMPT and isinstance(draft.body.get("lost"), Mapping):
            told = of_lost(draft.body, draft.body["lost"])
        else:
            continue
        if told is not None:
            found.append(Spent(place, kept, plain_text(agent), release, **told))
    return found


def of_answer(body: Mapping[str, Any]) -> dict[str, Any] | None:
    """None of a function that used nothing."""
    given = body.get("usage")
    usage: Mapping[str, Any] = given if isinstance(given, Mapping) else {}
    model = named(body)
    tokens_in, tokens_out = amount(usage.get("input_tokens")), amount(usage.get("output_tokens"))
    if "tokens" in usage:
        tokens_in, tokens_out = 0, amount(usage["tokens"])
    cost = None if unpriced_in(usage) else price(body.get("cost") or usage.get("cost") or 0)
    if not (model or tokens_in or tokens_out) and cost in (None, "0"):
        return None
    return {"model": model, "lost": False, "input_tokens": tokens_in, "output_tokens": tokens_out,
            "cached_tokens": amount(usage.get("cache_read_tokens")), "cost": cost}  # fmt: skip


def of_lost(body: Mapping[str, Any], lost: Mapping[str, Any]) -> dict[str, Any]:
    cost = lost.get("cost")
    return {"model": named(body), "lost": True, "input_tokens": amount(lost.get("input_tokens")),
            "output_tokens": amount(lost.get("output_tokens")), "cached_tokens": 0,
            "cost": None if cost is None else price(cost)}  # fmt: skip


def named(body: Mapping[str, Any]) -> str:
    """anthropic:claude-haiku-4-5, as a request names it; an answer has the two apart."""
    model, provider = body.get("model"), body.get("provider")
    if not isinstance(model, str):
        return ""
    whole = f"{provider}:{model}" if isinstance(provider, str) and provider and ":" not in model else model
    return plain_text(whole[:200])


def amount(value: Any) -> int:
    usable = isinstance(value, int | float) and 0 <= value < MOST
    return int(value) if usable else 0


def price(value: Any) -> str | None:
    """As the database takes it; None for what is no price."""
    try:
        found = Decimal(str(value))
    except InvalidOperation:
        return None
    return f"{found:f}" if found.is_finite() and abs(found) < MOST else None


# -- writing -----------------------------------------------------------------------------------------------------------

# Follows the append; of one whose decisions were refused the answer was written all the same.
SPEND_WITH = """
INSERT INTO runs_request_spent (run_id, seq, day, agent, release_id, model, lost, input_tokens, output_tokens,
                                cached_tokens, cost)
SELECT a.run, h.append_first_seq + p.place, (h.append_at AT TIME ZONE 'UTC')::date, a.agent, a.release, a.model,
       a.lost, a.tokens_in, a.tokens_out, a.cached, a.cost::numeric
  FROM unnest(%(runs)b::uuid[], %(epochs)b::bigint[], %(numbers)b::bigint[], %(place)b::bigint[], %(kept)b::bigint[],
              %(agent)b::text[], %(release)b::text[], %(model)b::text[], %(lost)b::bool[], %(tokens_in)b::bigint[],
              %(tokens_out)b::bigint[], %(cached)b::bigint[], %(cost)b::text[])
       AS a (run, epoch, number, place, kept, agent, release, model, lost, tokens_in, tokens_out, cached, cost)
  JOIN journal_head h ON h.run_id = a.run AND h.epoch = a.epoch AND h.last_append_no = a.number
 CROSS JOIN LATERAL (SELECT CASE WHEN h.append_refused THEN a.kept ELSE a.place END AS place) AS p
 WHERE p.place IS NOT NULL AND h.append_first_seq + p.place <= h.append_last_seq
ON CONFLICT DO NOTHING
"""


def as_columns(spent: Spent) -> dict[str, Any]:
    return {
        "place": spent.place, "kept": spent.kept_place, "agent": spent.agent, "release": spent.release,
        "model": spent.model, "lost": spent.lost, "tokens_in": spent.input_tokens, "tokens_out": spent.output_tokens,
        "cached": spent.cached_tokens, "cost": spent.cost,
    }  # fmt: skip


# One statement: who reads meanwhile sees either the requests or their sum.
FOLD = f"""
WITH gone AS (
    DELETE FROM runs_request_spent s USING (
        SELECT run_id, seq FROM runs_request_spent
         WHERE day < (clock_timestamp() AT TIME ZONE 'UTC')::date - {FOLDS_AFTER}
         ORDER BY day LIMIT {BATCH} FOR UPDATE SKIP LOCKED) AS old
     WHERE s.run_id = old.run_id AND s.seq = old.seq RETURNING s.*)
INSERT INTO runs_spending AS t (day, agent, release_id, model, requests, unpriced, input_tokens, output_tokens,
                                cached_tokens, cost, lost, lost_unpriced, lost_cost)
SELECT day, agent, release_id, model, count(*) FILTER (WHERE NOT lost),
       count(*) FILTER (WHERE NOT lost AND cost IS NULL),
       coalesce(sum(input_tokens) FILTER (WHERE NOT lost), 0), coalesce(sum(output_tokens) FILTER (WHERE NOT lost), 0),
       coalesce(sum(cached_tokens) FILTER (WHERE NOT lost), 0), coalesce(sum(cost) FILTER (WHERE NOT lost), 0),
       count(*) FILTER (WHERE lost), count(*) FILTER (WHERE lost AND cost IS NULL),
       coalesce(sum(cost) FILTER (WHERE lost), 0)
  FROM gone GROUP BY day, agent, release_id, model ORDER BY day, agent, release_id, model
    ON CONFLICT (day, agent, release_id, model) DO UPDATE SET requests = t.requests + excluded.requests,
       unpriced = t.unpriced + excluded.unpriced, input_tokens = t.input_tokens + excluded.input_tokens,
       output_tokens = t.output_tokens + excluded.output_tokens,
       cached_tokens = t.cached_tokens + excluded.cached_tokens, cost = t.cost + excluded.cost,
       lost = t.lost + excluded.lost, lost_unpriced = t.lost_unpriced + excluded.lost_unpriced,
       lost_cost = t.lost_cost + excluded.lost_cost
"""


def fold_spending(conn: Any) -> None:
    """Adds up what is over; the sweep calls it."""
    conn.execute(FOLD)


# -- reading -----------------------------------------------------------------------------------------------------------

SPENDING = """
SELECT day, agent, release_id, model, sum(requests), sum(unpriced), sum(input_tokens), sum(output_tokens),
       sum(cached_tokens), sum(cost), sum(lost), sum(lost_unpriced), sum(lost_cost)
  FROM (SELECT * FROM runs_spending WHERE day >= %(since)s AND day <= %(until)s
        UNION ALL
        SELECT day, agent, release_id, model, count(*) FILTER (WHERE NOT lost),
               count(*) FILTER (WHERE NOT lost AND cost IS NULL),
               coalesce(sum(input_tokens) FILTER (WHERE NOT lost), 0),
               coalesce(sum(output_tokens) FILTER (WHERE NOT lost), 0),
               coalesce(sum(cached_tokens) FILTER (WHERE NOT lost), 0),
               coalesce(sum(cost) FILTER (WHERE NOT lost), 0), count(*) FILTER (WHERE lost),
               count(*) FILTER (WHERE lost AND cost IS NULL), coalesce(sum(cost) FILTER (WHERE lost), 0)
          FROM runs_request_spent WHERE day >= %(since)s AND day <= %(until)s
         GROUP BY day, agent, release_id, model) AS every
 WHERE (%(agents)s::text[] IS NULL OR agent = ANY (%(agents)s))
 GROUP BY day, agent, release_id, model ORDER BY day, agent, release_id, model
"""


@dataclass(frozen=True, slots=True)
class Sum:
    """Of some requests. `cost` is of those whose price is known; of `unpriced` ones nobody knows. `lost` requests were
    never answered: they may have cost up to `lost_cost`, and `lost_unpriced` of them nobody knows what."""

    requests: int = 0
    unpriced: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cost: Decimal = Decimal(0)
    lost: int = 0
    lost_unpriced: int = 0
    lost_cost: Decimal = Decimal(0)

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    def __add__(self, other: Sum) -> Sum:
        return Sum(*(getattr(self, name) + getattr(other, name) for name in self.__slots__))


@dataclass(frozen=True, slots=True)
class Spending:
    day: date
    agent: str
    release: str
    model: str
    sum: Sum


def spending_of(cursor: Any, since: date, until: date, agents: Iterable[str] | None) -> list[Spending]:
    """By day (UTC), agent, release and model; both days are in it. `agents` None: all."""
    given = {"since": since, "until": until, "agents": None if agents is None else sorted(agents)}
    cursor.execute(SPENDING, given)
    return [
        Spending(day, agent, release, model, sum_of(*sums)) for day, agent, release, model, *sums in cursor.fetchall()
    ]


def sum_of(
    requests: Decimal, unpriced: Decimal, tokens_in: Decimal, tokens_out: Decimal, cached: Decimal, cost: Decimal,
    lost: Decimal, lost_unpriced: Decimal, lost_cost: Decimal,
) -> Sum:  # fmt: skip
    """As the database adds up."""
    return Sum(
        int(requests), int(unpriced), int(tokens_in), int(tokens_out), int(cached), cost, int(lost),
        int(lost_unpriced), lost_cost,
    )  # fmt: skip
