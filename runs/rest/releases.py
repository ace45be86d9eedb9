"""Releases as the API and the command line tell them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic import BaseModel, Field

from runs.fleet import FleetRow, Need, Rates, open_runs_by_release, servers, stranded_since, warnings_of
from runs.model_names import floating_in
from runs.models import Release, Stage
from runs.releases_compared import Change, Diff, TextChange, ToolChange


class ReleaseOut(BaseModel):
    id: str
    agent: str
    version: str
    content: Any
    created_at: datetime
    stage: Stage
    share: int = Field(description="Of a canary: how many of 100 new runs it takes.")
    staged_at: datetime = Field(description="When its stage or its share last changed.")
    staged_by: str = Field(description="Who changed it; `system` where a worker's announcement did.")
    open_runs: dict[str, int] = Field(description="Runs pinned to it that have not ended, by status.")
    stranded_since: datetime | None = Field(description="Since when the oldest run waits for a worker of this release.")
    served_by: list[str] = Field(description="Names of the live workers that serve it.")
    codes: dict[str, list[str]] = Field(
        description="Those workers by the digest of the source files with which they do: several differ."
    )
    warnings: list[str] = Field(description="What somebody should look at, in sentences.")


class ReleaseList(BaseModel):
    items: list[ReleaseOut]
    next_cursor: str | None


def releases_out(releases: Iterable[Release], agent: str | None = None) -> list[ReleaseOut]:
    """Each with who serves it and its open runs. `agent`: of these alone, where all are of one agent."""
    runs, since, served = open_runs_by_release(agent), stranded_since(agent), servers()
    rows = (FleetRow(r, runs.get(r.id, {}), served.get(r.id, ()), since.get(r.id)) for r in releases)
    return [release_out(row) for row in rows]


def release_out(row: FleetRow) -> ReleaseOut:
    release = row.release
    return ReleaseOut(
        id=release.id, agent=release.agent, version=release.version, content=release.content,
        created_at=release.created_at, stage=Stage(release.stage), share=release.share, staged_at=release.staged_at,
        staged_by=release.staged_by, open_runs=dict(row.runs), stranded_since=row.stranded_since,
        served_by=[server.name for server in row.servers], codes=row.codes,
        warnings=warnings_of(row) + model_warnings(release),
    )  # fmt: skip


def model_warnings(release: Release) -> list[str]:
    why = floating_in(release.content)
    return [f"{release.content['model']['name']} is a floating alias: {why}"] if why else []


class NeedOut(BaseModel):
    """`kind`: `current`, `canary` or `runs`; of runs, their status, how many, since when the oldest stands so, and the
    ids of up to five."""

    kind: str
    says: str
    status: str
    count: int
    since: datetime | None
    examples: list[UUID]


class NeedsOut(BaseModel):
    """What still needs a release. Nothing: `may_retire`."""

    release: str
    may_retire: bool
    needs: list[NeedOut]


def needs_out(release: Release, found: list[Need]) -> NeedsOut:
    needs = [NeedOut.model_validate(need, from_attributes=True) for need in found]
    return NeedsOut(release=release.id, may_retire=not needs, needs=needs)


class DiffOut(BaseModel):
    """Two releases, field by field; texts by line, tools by parameter."""

    before: str = Field(description="agent@version")
    after: str
    same: bool
    fields_: list[Change] = Field(alias="fields", description="driver, model, budget, deadline …")
    input: list[Change] = Field(description="Of the runs' input, by path.")
    texts: list[TextChange] = Field(description="A prompt, and any other text of several lines.")
    tools: list[ToolChange] = Field(description="Those that differ.")


def diff_out(before: Release, after: Release, found: Diff) -> DiffOut:
    return DiffOut(
        before=str(before), after=str(after), same=found.same, fields=list(found.fields), input=list(found.input),
        texts=list(found.texts), tools=list(found.tools),
    )  # fmt: skip


class RatesOut(BaseModel):
    """Of the runs started under it since then, the newest 20,000. Means are of those that ended; null: none did."""

    release: str
    since: datetime
    runs: int
    finished: int
    done: int
    failed: int
    cancelled: int
    in_doubt: int = Field(description="In which a call was ever in doubt.")
    denied: int = Field(description="In which a person denied a call.")
    asked: int = Field(description="In which a person was asked, or decided something.")
    tokens: float | None = Field(description="Mean tokens a run.")
    cost: float | None
    seconds: float | None = Field(description="Mean time from start to end.")


def rates_out(release: Release, found: Rates) -> RatesOut:
    measured = {name: getattr(found, name) for name in RatesOut.model_fields if name != "release"}
    return RatesOut(release=release.id, **measured)
