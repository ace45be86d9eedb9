"""Lists agents with their tools: `manage.py agents refund-desk`."""

from __future__ import annotations

import click

from runs.costs import Cost
from runs.management.arguments import AgentParam, RunsCommand, as_json
from runs.models import Release
from runs.rest.fleet import AgentList, AgentOut, agent_out
from terminal.command import HELP, exit_codes
from terminal.screen import Cell, Column, Screen

COLUMNS = (
    Column("agent"),
    Column("workers", right=True),
    Column("tools (effect class)"),
    Column("journaling a run costs"),
)


@click.command("agents", context_settings=HELP, epilog=exit_codes())
@click.argument("agent", type=AgentParam(), required=False)
@as_json
@click.pass_obj
def words(screen: Screen, /, agent: str | None, as_json: bool) -> None:
    """List agents that workers have announced: tools with their effect classes, and what journaling costs a run.

    The cost is measured on the runs that ended last: commits, bytes in the database, and what its worker waits for
    them. In a pipe, with tabs between: agent@version, durability, live workers, tools, commits, bytes, milliseconds.
    """
    if agent is not None:
        found = [agent_out(agent)]
    else:
        found = [
            agent_out(name) for name in Release.objects.order_by("agent").values_list("agent", flat=True).distinct()
        ]
    if as_json and agent is not None:
        screen.json(found[0].model_dump(mode="json"))
    elif as_json:
        screen.json(AgentList(items=found, next_cursor=None).model_dump(mode="json"))
    else:
        row = person_row if screen.terminal else script_row
        screen.table(COLUMNS, (row(each) for each in found), empty="No worker has announced an agent yet.")


def tools_of(agent: AgentOut) -> str:
    return ", ".join(f"{tool['name']} ({tool['effect']})" for tool in agent.tools)


def person_row(agent: AgentOut) -> tuple[Cell, ...]:
    kind = "" if agent.durability == "journal" else f" {agent.durability}"
    cost = "no run of it has ended" if not agent.journaling.runs else in_words(agent.journaling)
    return f"{agent.name}@{agent.version}{kind}", workers_of(agent), tools_of(agent), cost


def in_words(cost: Cost) -> str:
    waits = "" if cost.milliseconds is None else f", {cost.milliseconds:g} ms"
    return f"{cost.commits:g} commits, {cost.bytes / 1000:.1f} kB{waits}"


def script_row(agent: AgentOut) -> tuple[Cell, ...]:
    cost = agent.journaling
    waits = "" if cost.milliseconds is None else f"{cost.milliseconds:g}"
    measured = (f"{cost.commits:g}", f"{cost.bytes:g}", waits) if cost.runs else ("", "", "")
    return f"{agent.name}@{agent.version}", agent.durability, workers_of(agent), tools_of(agent), *measured


def workers_of(agent: AgentOut) -> int:
    return next(release.workers for release in agent.releases if release.version == agent.version)


class Command(RunsCommand):
    help = "List agents with their tools and what journaling costs a run of them."
    words = words
