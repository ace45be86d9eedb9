"""The agents of this process: those at module level of HOLDFAST_AGENTS."""

from __future__ import annotations

import functools
import importlib
import json

from django.conf import settings

from runs.agents import Agent
from runs.contracts import refusals
from runs.errors import UnknownAgent, UnknownRelease
from runs.models import Release

_announced: dict[str, Release] = {}  # what this process knows to be recorded; a release is never removed


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
            if not isinstance(agent, Agent) or found.get(agent.release_id) is agent:
                continue
            other = named.setdefault(f"{agent.name}@{agent.version}", agent)
            if other is not agent:
                raise AgentsUnusable(f"two agents are named {agent.name}@{agent.version}; the second is in {name}")
            if wrong := refusals(agent):
                raise AgentsUnusable(f"{name}: {wrong[0]}")
            found[agent.release_id] = agent
    return found


def announce() -> list[Release]:
    """Record the releases of this process with their full content. Raises AgentsUnusable as `announce_one`."""
    return [announce_one(agent) for agent in agents().values()]


def announce_one(agent: Agent) -> Release:
    """Its release, recorded if it was not. Other content under a known version is refused; what a worker that may
    redefine it has recorded is known."""
    others = Release.objects.filter(agent=agent.name, version=agent.version)
    own, declared = others.filter(id=agent.release_id).first(), json.dumps(agent.content)
    if own is None:
        differing = others.exclude(id=agent.release_id)  # another process may have recorded our own just now
        if not settings.HOLDFAST_ALLOW_REDEFINE and (other := differing.first()) is not None:
            raise AgentsUnusable(
                f"{other} is known with other content (release {other.id[:12]}): give the changed agent a new version, "
                "or in development set HOLDFAST_ALLOW_REDEFINE=1 (for up and worker also --allow-redefine)"
            )
        content = {"agent": agent.name, "version": agent.version, "content": agent.content}
        own, _ = Release.objects.get_or_create(id=agent.release_id, defaults=content | {"declared": declared})
    elif own.declared != declared:  # the same content, its fields in another order
        own.declared = declared
        own.save(update_fields=["declared"])
    _announced[agent.release_id] = own
    return own


def release_for(agent: str, version: str | None) -> Release:
    """The release that a new run of this agent is pinned to: this version, or the newest announced."""
    known = Release.objects.filter(agent=agent).defer("content", "declared").order_by("-created_at", "-id")
    if version is not None:
        wanted = version.removeprefix(f"{agent}@")
        chosen = known.filter(version=wanted).first() or known.filter(id=version).first()
        if chosen is None:
            raise UnknownRelease(f"{agent} has {', '.join(r.version for r in known) or 'none'}, not {wanted}.")
        return chosen
    own = next((a for a in agents().values() if a.name == agent), None)
    if own is not None:
        return _announced.get(own.release_id) or announce_one(own)
    newest = known.first()
    if newest is None:
        names = Release.objects.order_by("agent").values_list("agent", flat=True).distinct()
        raise UnknownAgent(f"{agent!r} is none of {', '.join(names) or 'the agents: none is announced'}.")
    return newest
