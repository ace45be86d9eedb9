"""Which tools an agent of the library has, and how each of them is treated."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic_ai import Agent as LibraryAgent
from pydantic_ai import ExternalToolset, FunctionToolset
from pydantic_ai.durable_exec import CapabilityOperationId
from pydantic_ai.tools import Tool as LibraryTool
from pydantic_ai.toolsets import AbstractToolset, DynamicToolset

from runs.integrations.pydantic_ai.history import LOOK_UP
from runs.integrations.pydantic_ai.tools import ANYTHING, JournaledTool, performing
from runs.integrations.pydantic_ai.units import named
from runs.limits import as_limit
from runs.tools import Approval, Effect, Probe, Tool

OTHERS = "*"
SETTINGS = ("timeout", "max_in_flight", "key_ttl", "retry", "limit", "rate", "summary", "sample", "canonical")


class OpenToolbox(dict[str, Tool]):
    """Tools by name. One of a server's that nobody has named is there as soon as it is asked for, and so is what looks
    things up for the library; the release does not name them."""

    def __init__(self, tools: Mapping[str, Tool]) -> None:
        super().__init__(tools)
        self._opened: dict[str, Tool] = {}

    def get(self, name: str, default: Any = None) -> Any:
        try:
            return self[name]
        except KeyError:
            return default

    def __missing__(self, name: str) -> Tool:
        if name == LOOK_UP:
            return Treatment().tool(LOOK_UP, effect="read")
        if name not in self._opened:
            toolset, separator, _ = name.partition(":")
            others = super().get(named(toolset, OTHERS)) if separator else None
            if others is None:
                raise KeyError(name)
            self._opened[name] = replace(others, name=name)
        return self._opened[name]


@dataclass(frozen=True)
class Treatment:
    """What journaled() was told of tools, by name."""

    effects: Mapping[str, Effect] = field(default_factory=dict)
    probes: Mapping[str, Probe] = field(default_factory=dict)
    approval: Mapping[str, Approval] = field(default_factory=dict)
    tools: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def names(self) -> set[str]:
        return {*self.effects, *self.probes, *self.approval, *self.tools}

    def tool(self, name: str, library: LibraryTool[Any] | None = None, effect: Effect = "unkeyed") -> JournaledTool:
        settings: dict[str, Any] = dict(self.tools.get(name, {}))
        if unknown := settings.keys() - SETTINGS:
            raise ValueError(f"tools={{{name!r}: …}} takes {', '.join(SETTINGS)}, not {sorted(unknown)[0]!r}")
        settings["limit"] = as_limit(settings.get("limit"))
        if library is not None and library.timeout is not None:
            settings.setdefault("timeout", library.timeout)
        schema = ANYTHING if library is None else library.function_schema.json_schema
        return JournaledTool(
            performing(name, schema, None if library is None else library.function),
            name=name,
            effect=self.effects.get(name, effect),
            probe=self.probes.get(name),
            approval=self.approval.get(name, library is not None and library.requires_approval),
            schema=schema,
            said="" if library is None else library.description or "",
            **settings,
        )


def tools_of(agent: LibraryAgent[Any, Any], treatment: Treatment, operations: Iterable[Any]) -> list[Tool]:
    """Raises ValueError for what cannot be journaled. `operations`: identities of what the library would execute beside
    requests and calls."""
    made: list[JournaledTool] = []
    servers = []
    for leaf in leaves(agent):
        if isinstance(leaf, FunctionToolset):
            made += [treatment.tool(name, tool) for name, tool in leaf.tools.items()]
        elif isinstance(leaf, DynamicToolset) or _is_server(leaf):
            servers.append(str(leaf.id))
        elif not isinstance(leaf, ExternalToolset):
            raise ValueError(
                f"the toolset {leaf.label} is of a kind ({type(leaf).__name__}) whose calls the library does not hand "
                "over: give its tools as functions, in a FunctionToolset"
            )
    for server in servers:
        own = sorted(name for name in treatment.names if name.startswith(named(server, "")))
        made += [treatment.tool(name) for name in dict.fromkeys([*own, named(server, OTHERS)])]
    if servers:
        made.append(treatment.tool(LOOK_UP, effect="read"))
    made += [treatment.tool(name) for name in sorted(set(map(operation_name, _capabilities(operations))))]
    if sealed := next((tool.name for tool in made if tool.has_secrets), None):
        raise ValueError(
            f"the tool {sealed} has a Secret parameter: answers are kept as the library wants them back, with all that"
            " the model gave. Let the tool find the secret by itself, as in deps, or use a ModelLoop"
        )
    names = [tool.name for tool in made]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"two of its tools have the name {twice[0]}: give one of them another, also below a prefix")
    if unknown := sorted(treatment.names - set(names)):
        raise ValueError(f"it has no tool {unknown[0]!r}; it has {', '.join(sorted(names)) or 'none'}")
    return list(made)


def added_since(agent: LibraryAgent[Any, Any], known: Container[str]) -> str | None:
    """A function tool that the agent has now and had not when it was declared."""
    functions = (leaf for leaf in leaves(agent) if isinstance(leaf, FunctionToolset))
    return next((name for leaf in functions for name in leaf.tools if name not in known), None)


def leaves(agent: LibraryAgent[Any, Any]) -> list[AbstractToolset[Any]]:
    found: list[AbstractToolset[Any]] = []
    for toolset in agent.toolsets:
        toolset.apply(found.append)
    return list({id(leaf): leaf for leaf in found}.values())


def _is_server(leaf: AbstractToolset[Any]) -> bool:
    """By its name: the module behind it is only there where `mcp` is installed."""
    return any(kind.__name__ == "MCPToolset" for kind in type(leaf).__mro__)


def _capabilities(operations: Iterable[Any]) -> Iterator[CapabilityOperationId]:
    return (each for each in operations if isinstance(each, CapabilityOperationId))


def operation_name(identity: CapabilityOperationId) -> str:
    return f"{identity.capability_id}.{identity.operation}"
