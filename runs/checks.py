"""`manage.py check`: what is wrong, risky or needless in the agents of this installation."""

from __future__ import annotations

import traceback
from collections.abc import Iterator

from django.conf import settings
from django.core.checks import CheckMessage, Error, Info, Warning
from django.db import DatabaseError

from runs.agents import Agent
from runs.contracts import Finding, findings, is_overkill, of_usual_timeouts, place_of
from runs.costs import journaling_cost
from runs.model_contracts import place
from runs.registry import AgentsUnusable, agents

LEVELS = {"error": Error, "warning": Warning, "info": Info}


def check_agents() -> list[CheckMessage]:
    try:
        known = list(agents().values())
    except AgentsUnusable as error:
        return [Error(str(error), hint=f"See {place_of_error(error)}.", id="holdfast.E001")]
    grace = settings.HOLDFAST_GRACE_SECONDS
    found = [*(each for agent in known for each in findings(agent, grace)), *of_usual_timeouts(known, grace)]
    told = {(finding.id, finding.says, finding.place): finding for finding in found}  # a tool may belong to several
    return [*map(message_of, told.values()), *(overkill(agent) for agent in known if is_overkill(agent))]


def message_of(finding: Finding) -> CheckMessage:
    kind = LEVELS[finding.level]
    return kind(f"{finding.says} ({finding.place})", hint=finding.fix, id=f"holdfast.{finding.id}")


def overkill(agent: Agent) -> CheckMessage:
    where = place_of(agent.flow or agent.decide) if agent.model is None else place(agent)
    return Info(
        f"agent {agent.name} only reads, and keeps a journal all the same: {measured(agent.name)} ({where})",
        hint="If a run may as well be started again, durability='stateless' keeps it in one row: a start, a claim and "
        "an end. It then takes at most 30 s and waits for nobody.",
        id="holdfast.I020",
    )


def measured(agent: str) -> str:
    """In words, of its last runs."""
    try:
        cost = journaling_cost(agent)
    except DatabaseError:
        return "what that costs is said when the database runs"
    if not cost.runs:
        return "none of its runs has ended yet, so what that costs is not known"
    took = f", {cost.milliseconds:g} ms of waiting" if cost.milliseconds is not None else ""
    return (
        f"{cost.commits:g} commits, {cost.entries:g} entries, {cost.bytes:,.0f} bytes{took} a run "
        f"(measured on {cost.runs})"
    )


def place_of_error(error: BaseException) -> str:
    """Where in the agents' own modules it was raised: the last line that is not of the runtime."""
    frames = list(_frames(error))
    own = [frame for frame in frames if "/runs/" not in frame and "importlib" not in frame]
    return (own or frames or ["the module"])[-1]


def _frames(error: BaseException | None) -> Iterator[str]:
    while error is not None:
        for frame in traceback.extract_tb(error.__traceback__):
            if not frame.filename.startswith("<"):
                yield f"{frame.filename}:{frame.lineno}"
        if isinstance(error, SyntaxError) and error.filename:
            yield f"{error.filename}:{error.lineno}"
        error = error.__cause__
