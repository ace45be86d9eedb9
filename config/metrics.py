"""/metrics for Prometheus. Every number comes from PostgreSQL, so that any web process tells the same.

Gauges are asked for by index and stay cheap with millions of runs: the open ones are counted, those that have ended are
told from the planner's statistics once the table is large. Counters are what worker processes hand over with their
heartbeats (runs/totals.py): they lag by a third of a lease, and a killed process takes its last seconds with it.
"""

from __future__ import annotations

import ipaddress
import secrets
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from django.conf import settings
from django.db import DatabaseError, connection, transaction
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_safe
from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import choose_encoder

from recovery.drains import in_force
from runs import totals
from runs.access import VIEW, user_of_token
from runs.fleet import FleetRow, fleet
from runs.models import ENDED, Status

SMALL = 32 * 2**20  # bytes of the table of runs up to which the ended ones are counted
TIMEOUT = "SET LOCAL statement_timeout = '5s'"
COUNT = "SELECT status, agent, count(*) FROM runs_run WHERE status = ANY (%s) GROUP BY status, agent"
ENDED_ESTIMATE = """
SELECT attnames, most_common_vals, most_common_freqs, (SELECT reltuples FROM pg_class WHERE oid = 'runs_run'::regclass)
  FROM pg_stats_ext WHERE statistics_name = 'runs_run_mix' AND most_common_vals IS NOT NULL
"""
SIZE = "SELECT pg_relation_size('runs_run')"
INTENTS = """
SELECT i ->> 'state', count(*), extract(epoch FROM clock_timestamp() - min((i ->> 'since')::timestamptz))::float8
  FROM runs_run, jsonb_array_elements(intents) AS i WHERE NOT intents = '[]' GROUP BY 1
"""
BROKEN = "SELECT count(*) FROM journal_brokenchain"
OF_PROXIES = ("X-Forwarded-", "Forwarded", "X-Real-Ip", "X-Client-Ip", "X-Cluster-Client-Ip", "True-Client-Ip", "Via",
              "Cf-Connecting-Ip")  # fmt: skip


@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """In the format that the scraper asks for. 401 for whoever may not look, 503 while the database is away."""
    try:
        if not may_look(request):
            refusal = HttpResponse("Send a viewer's token, or HOLDFAST_METRICS_TOKEN.\n", status=401)
            refusal["WWW-Authenticate"] = 'Bearer realm="holdfast"'
            return refusal
        registry = CollectorRegistry()
        registry.register(Database())
        encode, content_type = choose_encoder(request.headers.get("Accept", ""))
        return HttpResponse(encode(registry), content_type=content_type)
    except DatabaseError:
        return HttpResponse("The database does not answer.\n", status=503, content_type="text/plain")


def may_look(request: HttpRequest) -> bool:
    """Numbers and names of agents, no payloads: this machine may look unless a token is set. Behind a proxy everybody
    comes from this machine, and whoever came through one needs a token."""
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() == "bearer" and token:
        wanted = settings.HOLDFAST_METRICS_TOKEN
        if wanted and secrets.compare_digest(token.encode(), wanted.encode()):
            return True
        user = user_of_token(token)
        return user is not None and user.has_perm(VIEW)
    if request.user.is_authenticated:
        return request.user.has_perm(VIEW)
    forwarded = any(name.title().startswith(OF_PROXIES) for name in request.headers)
    return not settings.HOLDFAST_METRICS_TOKEN and not forwarded and is_loopback(request.META.get("REMOTE_ADDR", ""))


def is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


class Database:
    """A collector whose numbers are those of the moment."""

    def describe(self) -> list[Metric]:
        return []

    def collect(self) -> Iterator[Metric]:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(TIMEOUT)
            runs = runs_by_status(cursor)
            cursor.execute(INTENTS)
            intents = {state: (count, age) for state, count, age in cursor.fetchall()}
            counted = totals.counted(cursor)
            cursor.execute(BROKEN)
            broken = float(cursor.fetchone()[0])
            drains = float(in_force().count())
            rows = [row for row in fleet(None, retired=True) if row.runs or row.servers or row.takes_new_runs]
        yield from gauges(runs, intents)
        yield GaugeMetricFamily("holdfast_chains_broken", "Journals whose hash chain was found broken.", broken)
        yield GaugeMetricFamily("holdfast_drains_open", "Drains whose gate is in force.", drains)
        yield from releases(rows)
        yield from counters(counted)


def runs_by_status(cursor: Any) -> dict[tuple[str, str], float]:
    ended = list(ENDED)
    cursor.execute(COUNT, [[status for status in Status if status not in ENDED]])  # "not ended" is nothing for an index
    found = {(status, agent): float(count) for status, agent, count in cursor.fetchall()}
    cursor.execute(SIZE)
    if cursor.fetchone()[0] > SMALL:
        cursor.execute(ENDED_ESTIMATE)
        if (row := cursor.fetchone()) is not None:
            columns, values, shares, rows = row
            status, agent = columns.index("status"), columns.index("agent")
            mix = zip(values, shares, strict=True)
            told = {(value[status], value[agent]): float(round(share * rows)) for value, share in mix}
            return found | {kind: count for kind, count in told.items() if kind[0] in ended}
    cursor.execute(COUNT, [ended])
    return found | {(status, agent): float(count) for status, agent, count in cursor.fetchall()}


def gauges(runs: Mapping[tuple[str, str], float], intents: Mapping[str, tuple[int, float]]) -> Iterator[Metric]:
    by_status = GaugeMetricFamily(
        "holdfast_runs", "Runs; those that ended are estimated once they are many.", labels=["status", "agent"]
    )
    for (status, agent), count in sorted(runs.items()):
        by_status.add_metric([status, agent], count)
    yield by_status

    def of(wanted: str) -> float:
        return sum(count for (status, _), count in runs.items() if status == wanted)

    doubt, waiting = intents.get("in_doubt", (0, 0.0)), intents.get("awaiting_approval", (0, 0.0))
    yield GaugeMetricFamily("holdfast_queue_depth", "Runs that wait for a worker.", of("queued"))
    yield GaugeMetricFamily(
        "holdfast_runs_stranded", "Runs that a worker of their release would go on with.", of("waiting_for_version")
    )
    yield GaugeMetricFamily("holdfast_intents_in_doubt", "Calls of parked runs of which nobody knows.", doubt[0])
    yield GaugeMetricFamily("holdfast_approvals_waiting", "Calls that wait for an approval.", waiting[0])
    yield GaugeMetricFamily("holdfast_approvals_oldest_age_seconds", "Since when the oldest waits.", max(waiting[1], 0))


def releases(rows: Sequence[FleetRow]) -> Iterator[Metric]:
    """Of those that somebody counts on; the others would only grow in number."""
    runs = GaugeMetricFamily(
        "holdfast_release_runs", "Runs pinned to a release that have not ended.", labels=["agent", "version", "stage"]
    )
    workers = GaugeMetricFamily(
        "holdfast_release_workers", "Live workers that serve it.", labels=["agent", "version", "stage"]
    )
    codes = GaugeMetricFamily(
        "holdfast_release_codes", "Different codes that those workers run.", labels=["agent", "version", "stage"]
    )
    counts: dict[tuple[str, str, str], list[int]] = defaultdict(lambda: [0, 0, 0])
    for row in rows:  # a version that was redefined in development is several releases
        named = counts[row.release.agent, row.release.version, row.release.stage]
        for place, count in enumerate((row.open_runs, len(row.servers), len(row.codes))):
            named[place] += count
    for labels, numbers in sorted(counts.items()):
        for gauge, number in zip((runs, workers, codes), numbers, strict=True):
            gauge.add_metric(labels, number)
    yield from (runs, workers, codes)
    oldest = min((row.stranded_since for row in rows if row.stranded_since is not None), default=None)
    age = 0.0 if oldest is None else max((timezone.now() - oldest).total_seconds(), 0.0)
    unserved = float(sum(row.open_runs for row in rows if not row.served))
    yield GaugeMetricFamily(
        "holdfast_runs_unserved", "Open runs whose release no worker serves, waiting or not.", unserved
    )
    yield GaugeMetricFamily("holdfast_runs_stranded_oldest_age_seconds", "Since when the oldest is stranded.", age)


COUNTERS = {
    totals.STEPS: ("holdfast_steps", "Steps that were settled by a worker."),
    totals.LEASES_LOST: ("holdfast_leases_lost", "Worker sessions that others had to end."),
    totals.FENCED: ("holdfast_fenced_writes", "Appends refused because the run had gone to another epoch."),
    totals.TOKENS: ("holdfast_tokens", "Tokens that models reported."),
    totals.COST: ("holdfast_cost", "Cost that models reported, in their currency."),
}
HISTOGRAMS = {
    totals.STEP_SECONDS: ("holdfast_step_seconds", "From a call's last send to its outcome."),
    totals.APPEND_SECONDS: ("holdfast_append_seconds", "From handing entries over to their commit."),
}


def counters(counted: Mapping[str, float]) -> Iterator[Metric]:
    for name, (told, said) in COUNTERS.items():
        yield CounterMetricFamily(told, said, counted.get(name, 0.0))
    for name, (told, said) in HISTOGRAMS.items():
        buckets, so_far = [], 0.0
        for place, bound in enumerate((*totals.BOUNDS, float("inf"))):
            so_far += counted.get(f"{name}:{place}", 0.0)
            buckets.append(("+Inf" if bound == float("inf") else f"{bound:g}", so_far))
        yield HistogramMetricFamily(told, said, buckets=buckets, sum_value=counted.get(f"{name}:sum", 0.0))
