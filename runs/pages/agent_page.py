"""What the pages of agents show: contracts of their tools, bounds, releases, and what gates and limits do just now."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, F, Max, Q

from runs.access import Person, seen_by
from runs.gates import gates_seen
from runs.models import ENDED, Gate, Permit, Release, Run, Status, WorkerSession
from runs.rest.fleet import AgentOut, GateOut, agent_out, gates_out
from runs.staging import main_release

MOST_COUNTED = 10_000
OPEN = [status for status in Status if status not in ENDED]


@dataclass(frozen=True, slots=True)
class AgentRow:
    """`counts`: its open runs by status. `release`: its current one, without that its newest. `workers`: live ones that
    serve it."""

    name: str
    release: Release
    releases: int
    workers: int
    counts: Sequence[tuple[str, int]]
    gates: Sequence[Gate]

    @property
    def tools(self) -> Sequence[Mapping[str, Any]]:
        return list(self.release.contract.get("tools", []))

    @property
    def stateless(self) -> bool:
        return bool(self.release.content.get("durability") == "stateless")


@dataclass(frozen=True, slots=True)
class ToolCard:
    """A tool's contract, its gate if it has one, and how many calls have a permit or stand in line (None: no limit)."""

    contract: Mapping[str, Any]
    gate: GateOut | None
    granted: int | None
    waiting: int

    @property
    def scope(self) -> str:
        return f"tool:{self.contract['name']}"


@dataclass(frozen=True, slots=True)
class Parameter:
    """A named part of what a tool or an agent takes."""

    name: str
    schema: Mapping[str, Any]
    required: bool

    @property
    def secret(self) -> bool:
        return self.schema.get("writeOnly") is True


def parameters_of(given: Mapping[str, Any] | None) -> list[Parameter]:
    schema = given or {}
    needed, named = schema.get("required") or (), schema.get("properties") or {}
    return [Parameter(name, one if isinstance(one, Mapping) else {}, name in needed) for name, one in named.items()]


@dataclass(frozen=True, slots=True)
class ReleaseRow:
    id: str
    version: str
    created_at: Any
    workers: int
    open_runs: int
    runs: str


@dataclass(frozen=True, slots=True)
class AgentPage:
    agent: AgentOut
    tools: Sequence[ToolCard]
    releases: Sequence[ReleaseRow]
    counts: Sequence[tuple[str, int]]
    gates: Sequence[GateOut]

    @property
    def settling(self) -> bool:
        return is_settling(self.gates)

    @property
    def takes(self) -> list[Parameter]:
        return parameters_of(self.agent.input)

    @property
    def gated(self) -> bool:
        return any(gate.scope == f"agent:{self.agent.name}" for gate in self.gates)


def gates_over(agent: str, user: Person) -> list[GateOut]:
    """The open gates that stop some of this agent's work, the newest first; with no name, every one."""
    known = list(Release.objects.filter(agent=agent)) if agent else []
    return gates_out([gate for gate in gates_seen(user) if not agent or concerns(gate.scope, agent, known)])


def is_settling(gates: Sequence[GateOut]) -> bool:
    """Whether some worker has yet to hear of one."""
    return any(gate.not_yet_at for gate in gates)


def agent_rows(user: Person) -> list[AgentRow]:
    """Every agent that a worker has announced and the user sees, by name."""
    releases: dict[str, list[Release]] = defaultdict(list)
    for release in seen_by(user, Release.objects.order_by("agent", "-created_at", "id")):
        releases[release.agent].append(release)
    counts: dict[str, list[tuple[str, int]]] = defaultdict(list)
    rows = Run.objects.filter(status__in=OPEN).values_list("agent", "status").annotate(Count("id")).order_by("status")
    for agent, status, count in rows:
        counts[agent].append((status, count))
    served = [set(serves) for serves in live_sessions().values_list("serves", flat=True)]
    gates = list(Gate.objects.filter(lifted_at=None))
    found = []
    for name, known in releases.items():
        main = main_release(known)
        over = [gate for gate in gates if concerns(gate.scope, name, known)]
        found.append(AgentRow(name, main, len(known), sum(main.id in serves for serves in served), counts[name], over))
    return found


def agent_page(name: str, user: Person) -> AgentPage:
    """Raises AgentNotFound."""
    agent = agent_out(name, user)
    gates = gates_over(name, user)
    by_scope = {gate.scope: gate for gate in gates}
    permits = permits_of([f"tool:{tool['name']}" for tool in agent.tools])
    open_runs = Run.objects.filter(agent=name, status__in=OPEN)
    by_release = dict(open_runs.values_list("release_id").annotate(Count("id")))
    cards = [
        ToolCard(tool, by_scope.get(f"tool:{tool['name']}"), *permits_for(tool, permits.get(f"tool:{tool['name']}")))
        for tool in agent.tools
    ]
    releases = [
        ReleaseRow(r.id, r.version, r.created_at, r.workers, by_release.get(r.id, 0), how_many(r.id))
        for r in agent.releases
    ]
    counts = list(open_runs.values_list("status").annotate(Count("id")).order_by("status"))
    return AgentPage(agent, cards, releases, counts, gates)


def live_sessions() -> Any:
    return WorkerSession.objects.filter(ended_at__isnull=True)


def concerns(scope: str, agent: str, releases: Sequence[Release]) -> bool:
    """Whether a gate stops some of this agent's work. A worker's or a region's gate may stop anybody's."""
    kind, _, what = scope.partition(":")
    match kind:
        case "agent":
            return what == agent
        case "release":
            return what.partition("@")[0] == agent
        case "tool":
            return any(tool["name"] == what for release in releases for tool in release.content.get("tools", []))
    return True


def permits_of(scopes: Sequence[str]) -> dict[str, tuple[int, int]]:
    """By scope: calls with a permit, calls in line."""
    rows = (
        Permit.objects.filter(scope__in=scopes)
        .values("scope")
        .annotate(granted=Count("granted_at"), asked=Count("step"), last=Max(F("asked_at")))
    )
    return {row["scope"]: (row["granted"], row["asked"] - row["granted"]) for row in rows}


def permits_for(tool: Mapping[str, Any], found: tuple[int, int] | None) -> tuple[int | None, int]:
    limited = "limit" in tool or "rate" in tool
    return (found or (0, 0)) if limited else (None, 0)


def how_many(release_id: str) -> str:
    """Of all times; counted up to a bound, since there may be millions."""
    found = Run.objects.filter(Q(release=release_id)).order_by()[: MOST_COUNTED + 1].count()
    return f"over {MOST_COUNTED:,}" if found > MOST_COUNTED else f"{found:,}"
