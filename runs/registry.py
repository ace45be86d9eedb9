"""The agents of this process: those at module level of HOLDFAST_AGENTS."""

from __future__ import annotations

import functools
import importlib
import json
from typing import Any

from django.conf import settings
from django.db import transaction

from runs.agents import Agent
from runs.contracts import refusals
from runs.errors import NoCurrentRelease, ReleaseTakesNoRuns, UnknownAgent, UnknownRelease
from runs.models import Release, Stage
from runs.releases_compared import in_words
from runs.staging import chosen_release, current_of, releases_of, stage_announced

_announced: set[str] = set()  # what this process knows to be recorded; a release is never removed


class AgentsUnusable(Exception):
    """An agent module cannot be used."""


@functools.cache
def agents() -> dict[str, Agent]:
    """By release id. Raises AgentsUnusable naming the module."""
    found: dict[str, Agent] = {}
    named: dict[str, Agent] = {}
    for name in settings.HOLDFAST_AGENTS:
        try:
            module = importlib.import_module(name)
        except (Exception, SystemExit) as error:
            raise AgentsUnusable(f"HOLDFAST_AGENTS names {name}, which cannot be imported: {error}") from error
        for agent in vars(module).values():
            if not isinstance(agent, Agent) or found.get(release_id := release_of(agent, name)) is agent:
                continue
            other = named.setdefault(f"{agent.name}@{agent.version}", agent)
            if other is not agent:
                raise AgentsUnusable(f"two agents are named {agent.name}@{agent.version}; the second is in {name}")
            if wrong := refusals(agent):
                raise AgentsUnusable(f"{name}: {wrong[0]}")
            found[release_id] = agent
    return found


def release_of(agent: Agent, module: str) -> str:
    """Its id. Raises AgentsUnusable where a tool's declaration is none."""
    try:
        return agent.release_id
    except ValueError as error:
        raise AgentsUnusable(f"{module}: agent {agent.name}: {error}") from error


def announce(*, serving: bool = True) -> list[Release]:
    """Record the releases of this process with their full content. Raises AgentsUnusable as `announce_one`."""
    return [announce_one(agent, serving=serving) for agent in agents().values()]


def announce_one(agent: Agent, *, serving: bool = True) -> Release:
    """Its release, recorded if it was not, with its stage (`stage_announced`). `serving`: by a worker, which executes
    its runs. Other content under a known version is refused; what a worker that may redefine it has recorded is known.
    """
    others = Release.objects.filter(agent=agent.name, version=agent.version)
    declared = json.dumps(agent.content)
    with transaction.atomic():
        own = others.filter(id=agent.release_id).first()
        if own is None:
            differing = others.exclude(id=agent.release_id)  # another process may have recorded our own just now
            if not settings.HOLDFAST_ALLOW_REDEFINE and (other := differing.first()) is not None:
                raise AgentsUnusable(
                    f"{other} is known with other content (release {other.id[:12]}; it differs in "
                    f"{in_words(other.contract, agent.content)}): give the changed agent a new version, "
                    "or in development set HOLDFAST_ALLOW_REDEFINE=1 (for up and worker also --allow-redefine)"
                )
            content = {"agent": agent.name, "version": agent.version, "content": agent.content}
            own, _ = Release.objects.get_or_create(id=agent.release_id, defaults=content | {"declared": declared})
        elif own.declared != declared:  # the same content, its fields in another order
            own.declared = declared
            own.save(update_fields=["declared"])
        stage_announced(own, serving=serving)
    _announced.add(agent.release_id)
    return own


def release_for(agent: str, version: str | None, sticky: str | None = None) -> Release:
    """The release that a new run of this agent is pinned to: this version, or by stage and share. What is started under
    the same `sticky` text falls to the same side of a canary's share.

    Raises UnknownAgent, UnknownRelease, ReleaseTakesNoRuns, NoCurrentRelease.
    """
    own = [a for a in agents().values() if a.name == agent]
    for each in own:
        if each.release_id not in _announced:  # by a process that only starts runs: a worker has before
            announce_one(each, serving=False)
    if version is not None:
        return _named(agent, version)
    chosen = chosen_release(agent, sticky)
    if chosen is None and own:  # known to this process, but not to this database
        announce_one(own[-1], serving=False)
        chosen = chosen_release(agent, sticky)
    if chosen is None:
        raise _none_taken(agent)
    return contract_of(chosen)


def contract_of(release_id: str) -> Release:
    """The release with its content, which never changes and is kept in this process; its stage is asked for anew."""
    return Release.from_db("default", ["id", "agent", "version", "content"], (release_id, *_contract(release_id)))


@functools.lru_cache(maxsize=256)
def _contract(release_id: str) -> tuple[str, str, dict[str, Any]]:
    return Release.objects.values_list("agent", "version", "content").get(id=release_id)


def _named(agent: str, version: str) -> Release:
    """Of several contents under one version the last. It may be started unless it is to end."""
    known = releases_of(agent).defer("content", "declared")
    wanted = version.removeprefix(f"{agent}@")
    found = known.filter(version=wanted).first() or known.filter(id=version).first()
    if found is None:
        raise UnknownRelease(f"{agent} has {', '.join(r.version for r in known) or 'none'}, not {wanted}.")
    if found.stage in (Stage.RETIRING, Stage.RETIRED):
        current = current_of(agent)
        raise ReleaseTakesNoRuns(str(found), found.stage, None if current is None else str(current))
    return contract_of(found.id)


def _none_taken(agent: str) -> UnknownAgent | NoCurrentRelease:
    if known := [str(release) for release in releases_of(agent).defer("content", "declared")]:
        return NoCurrentRelease(agent, known)
    names = Release.objects.order_by("agent").values_list("agent", flat=True).distinct()
    return UnknownAgent(f"{agent!r} is none of {', '.join(names) or 'the agents: none is announced'}.")
