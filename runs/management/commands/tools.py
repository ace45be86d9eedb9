"""Whether tools keep what their effect class promises: `manage.py tools check`."""

from __future__ import annotations

from difflib import get_close_matches

import click

from runs.management.arguments import RunsCommand, as_json
from runs.promises import Promise, examine
from runs.registry import agents
from runs.tools import Tool
from terminal.command import DONE, FAILED, HELP, Refused, exit_codes
from terminal.screen import Column, Screen, Styled

COLUMNS = (Column("tool", keep=True), Column("promise"), Column("", keep=True), Column("seen"))
STYLES = {"kept": "green", "broken": "bold red", "skipped": "dim"}


@click.group(context_settings=HELP, epilog=exit_codes())
def words() -> None:
    """Try out tools."""


@words.command(epilog=exit_codes(exit_1="a promise is broken"))
@click.argument("names", metavar="[TOOL]...", nargs=-1)
@as_json
@click.pass_obj
def check(screen: Screen, /, names: tuple[str, ...], as_json: bool) -> int:
    """Call keyed and probed tools with their sample, really: once, again under the same key, with other arguments.

    Their probes are asked before and after. Tools without @tool(sample={…}) are skipped.
    """
    seen = [promise for tool in chosen(names) for promise in examine(tool)]
    if as_json:
        screen.json([dict(zip(Promise.__slots__, row_of(promise), strict=True)) for promise in seen])
    else:
        screen.table(COLUMNS, ([*row_of(p)[:2], Styled(p.state, STYLES[p.state]), p.said] for p in seen))
    return FAILED if any(promise.state == "broken" for promise in seen) else DONE


def row_of(promise: Promise) -> list[str]:
    return [promise.tool, promise.promise, promise.state, promise.said]


def chosen(names: tuple[str, ...]) -> list[Tool]:
    known: dict[str, Tool] = {}
    for agent in agents().values():
        for tool in agent.toolbox.values():
            known.setdefault(tool.name, tool)
    for name in names:
        if name not in known:
            near = get_close_matches(name, known, 1)
            raise Refused(f"No agent has a tool {name!r}" + (f"; did you mean {near[0]}?" if near else "."))
    return [known[name] for name in names] if names else [known[name] for name in sorted(known)]


class Command(RunsCommand):
    help = "Try out tools."
    words = words
