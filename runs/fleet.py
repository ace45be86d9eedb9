"""What runs are pinned to and who serves it: the matrix of releases and live workers, what a release is still needed
for, and how the runs of one fare beside those of another. All by index; ended runs are never counted as a whole.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db import connection
from django.db.models import Count, Min, Q, QuerySet
from django.db.models.functions import Now

from runs.access import Person, seen_by
from runs.models import ENDED, Release, Run, Stage, Status, WorkerSession

OPEN = tuple(status for status in Status if status not in ENDED)  # "not ended" is nothing for an index
EXAMPLES = 5  # runs named for each status


# -- the matrix --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Server:
    """A live worker session that serves a release. `code`: digest of the source files with which it does. `draining`:
    it takes no more runs. `silent`: its lease has run out, and a sweep is about to end it."""

    session: UUID
    name: str
    host: str
    pool: str
    region: str
    concurrency: int
    code: str
    draining: bool
    silent: bool


@dataclass(frozen=True, slots=True)
class FleetRow:
    """A release with who serves it and its open runs. `release` comes without its content. `runs`: open ones by status,
    exact, only statuses that occur. `servers`: live sessions, by name. `stranded_since`: of the run that has waited
    longest for a worker of this release; None where none does."""

    release: Release
    runs: Mapping[str, int]
    servers: Sequence[Server]
    stranded_since: datetime | None

    @property
    def open_runs(self) -> int:
        return sum(self.runs.values())

    @property
    def stranded(self) -> int:
        return self.runs.get(Status.WAITING_FOR_VERSION, 0)

    @property
    def served(self) -> bool:
        """Whether some live worker takes its runs: one that neither drains nor is silent."""
        return any(not server.draining and not server.silent for server in self.servers)

    @property
    def codes(self) -> dict[str, list[str]]:
        """Names of its workers by the digest of their code. More than one digest: a run's code changes with the worker
        that resumes it, and each change is decided again from the start of the run."""
        found: dict[str, list[str]] = defaultdict(list)
        for server in self.servers:
            found[server.code].append(server.name)
        return dict(found)

    @property
    def unserved(self) -> bool:
        """Somebody counts on it (open runs, or new ones that it is to take), and nobody serves it."""
        return not self.served and (bool(self.runs) or self.takes_new_runs)

    @property
    def takes_new_runs(self) -> bool:
        return self.release.stage in (Stage.CURRENT, Stage.CANARY)


def warnings_of(row: FleetRow) -> list[str]:
    """What somebody should look at, in sentences."""
    found = []
    if row.stranded:
        runs = "1 run waits" if row.stranded == 1 else f"{row.stranded:,} runs wait"
        found.append(f"{runs} for a worker that serves it")
    if row.unserved:
        found.append("no live worker serves it")
    if len(row.codes) > 1:
        found.append(f"its workers run {len(row.codes)} different codes")
    return found


ORDER = {stage: place for place, stage in enumerate(
    (Stage.CANARY, Stage.CURRENT, Stage.CANDIDATE, Stage.RETIRING, Stage.RETIRED)
)}  # fmt: skip


def fleet(user: Person | None, *, agent: str | None = None, retired: bool = False) -> list[FleetRow]:
    """The matrix, of what the user sees: by agent, then canary, current, candidates, retiring, each the newest first.
    Retired ones without open runs only if asked for."""
    rows = seen_by(user, Release.objects.defer("content", "declared").order_by("agent", "-created_at", "id"))
    releases = list(rows.filter(agent=agent) if agent is not None else rows)
    runs, since = open_runs_by_release(agent), stranded_since(agent)
    served = servers()
    found = [FleetRow(r, runs.get(r.id, {}), served.get(r.id, ()), since.get(r.id)) for r in releases]
    shown = [row for row in found if retired or row.release.stage != Stage.RETIRED or row.runs]
    return sorted(shown, key=lambda row: (row.release.agent, ORDER[Stage(row.release.stage)]))


def open_runs_by_release(agent: str | None = None) -> dict[str, dict[str, int]]:
    rows = _open_runs(agent).values_list("release_id", "status").annotate(Count("id")).order_by("release_id", "status")
    found: dict[str, dict[str, int]] = defaultdict(dict)
    for release_id, status, count in rows:
        found[release_id][status] = count
    return found


def stranded_since(agent: str | None = None) -> dict[str, datetime]:
    stranded = _open_runs(agent).filter(status=Status.WAITING_FOR_VERSION)
    return dict(stranded.values_list("release_id").annotate(Min("since")).order_by())


def _open_runs(agent: str | None) -> QuerySet[Run]:
    runs = Run.objects.filter(status__in=OPEN)
    return runs if agent is None else runs.filter(agent=agent)


def servers() -> dict[str, list[Server]]:
    """Live sessions by the id of each release that they serve."""
    found: dict[str, list[Server]] = defaultdict(list)
    live = WorkerSession.objects.filter(ended_at=None).order_by("name", "id")
    for row in live.annotate(silent=Q(expires_at__lt=Now())):
        common = row.id, row.name, row.host, row.pool, row.region, row.concurrency
        for release_id in row.serves:
            code = row.codes.get(release_id, "")
            found[release_id].append(Server(*common, code, row.draining_at is not None, row.silent))
    return found


# -- what still needs a release ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Need:
    """One thing that needs a release: `kind` is `current`, `canary` or `runs`. Of runs their status, how many there
    are, since when the oldest stands so, and the ids of up to five, the oldest first."""

    kind: str
    says: str
    status: str = ""
    count: int = 0
    since: datetime | None = None
    examples: Sequence[UUID] = ()


def needs(release: Release) -> list[Need]:
    """What still needs it; nothing: it may retire, and the workers that serve only it may be stopped."""
    found = []
    if release.stage == Stage.CURRENT:
        found.append(Need("current", f"new runs of {release.agent} are pinned to it"))
    if release.stage == Stage.CANARY:
        found.append(Need("canary", f"it takes {release.share} of 100 new runs of {release.agent}"))
    open_runs = Run.objects.filter(release_id=release.id, status__in=OPEN)
    for status, count, since in open_runs.values_list("status").annotate(Count("id"), Min("since")).order_by("status"):
        oldest = open_runs.filter(status=status).order_by("since", "id").values_list("id", flat=True)[:EXAMPLES]
        said = f"{count:,} {'run' if count == 1 else 'runs'} {Status(status).label.lower()}"
        found.append(Need("runs", said, status, count, since, list(oldest)))
    return found


# -- how its runs fare -------------------------------------------------------------------------------------------------

MOST = 20_000  # runs looked at for one comparison, the newest
BEFORE = timedelta(seconds=1)  # an id may be older than its row by this
FEW = 30  # finished runs below which a difference says little
RATES = f"""
SELECT count(*), count(*) FILTER (WHERE status = 'done'), count(*) FILTER (WHERE status = 'failed'),
       count(*) FILTER (WHERE status = 'cancelled'), count(*) FILTER (WHERE doubts > 0),
       count(*) FILTER (WHERE denials > 0),
       count(*) FILTER (WHERE person_acted OR intents @> '[{{"state": "awaiting_approval"}}]'
                           OR intents @> '[{{"state": "asked"}}]'),
       (avg(tokens) FILTER (WHERE ended_at IS NOT NULL))::float8, avg(cost) FILTER (WHERE ended_at IS NOT NULL),
       (avg(extract(epoch FROM ended_at - created_at)) FILTER (WHERE ended_at IS NOT NULL))::float8
  FROM (SELECT * FROM runs_run
         WHERE release_id = %(release)s AND id >= %(first)s AND created_at >= %(since)s AND forked_from_id IS NULL
         ORDER BY id DESC LIMIT {MOST}) AS r
"""


@dataclass(frozen=True, slots=True)
class Rates:
    """Of the runs that were started since a time and are pinned to a release now, the newest 20,000 (forks apart, which
    a person began in the middle): how many, how they ended, and in how many a call was ever in doubt, a person denied a
    call, or a person was asked or decided something. `tokens`, `cost` and `seconds` are means of those that ended; None
    where none did."""

    since: datetime
    runs: int
    done: int
    failed: int
    cancelled: int
    in_doubt: int
    denied: int
    asked: int
    tokens: float | None
    cost: float | None
    seconds: float | None

    @property
    def finished(self) -> int:
        return self.done + self.failed + self.cancelled

    @property
    def failed_share(self) -> float | None:
        """Of the finished, 0 to 1; None where none has."""
        return self.failed / self.finished if self.finished else None

    @property
    def in_doubt_share(self) -> float | None:
        """Of all, for what is in doubt does not finish."""
        return self._of_all(self.in_doubt)

    @property
    def denied_share(self) -> float | None:
        return self._of_all(self.denied)

    @property
    def asked_share(self) -> float | None:
        return self._of_all(self.asked)

    @property
    def few(self) -> bool:
        """Too few have finished for a comparison."""
        return self.finished < FEW

    def _of_all(self, count: int) -> float | None:
        return count / self.runs if self.runs else None


def rates(release: Release, since: datetime) -> Rates:
    """Of a canary and of the current release since the same time, the two can be laid side by side."""
    first = UUID(int=int((since - BEFORE).timestamp() * 1000) << 80)
    with connection.cursor() as cursor:
        cursor.execute(RATES, {"release": release.id, "first": first, "since": since})
        return Rates(since, *cursor.fetchone())
