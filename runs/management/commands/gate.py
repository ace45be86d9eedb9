"""Gates: `manage.py gate place tool:refund --reason 'the bank reports double bookings'`."""

from __future__ import annotations

import click

from runs.access import shell_actor
from runs.gates import lift_gate, place_gate, unknown_in
from runs.management.arguments import RunsCommand, as_json, reason_option, when
from runs.models import Gate
from runs.rest.fleet import GateList, GateOut, gates_out
from terminal.command import HELP, exit_codes
from terminal.screen import Cell, Column, Screen, Styled

NEWEST = 100
COLUMNS = (
    Column("scope"), Column("state", keep=True), Column("since", keep=True, right=True), Column("who"), Column("why"),
    Column("not yet heard of at"),
)  # fmt: skip
the_scope = click.argument("scope", metavar="all|agent:X|release:X@V|worker:W|region:R|tool:T")


@click.group(context_settings=HELP, epilog=exit_codes())
def words() -> None:
    """Stop what runs send, in a scope, and let it go on."""


@words.command("list", epilog=exit_codes())
@click.option("--all", "whole", is_flag=True, help=f"The newest {NEWEST}, lifted ones too.")
@as_json
@click.pass_obj
def list_gates(screen: Screen, /, whole: bool, as_json: bool) -> None:
    """Gates in place, the newest first.

    In a pipe, with tabs between: scope, state, since, who, why, workers that have not heard of it yet.
    """
    rows = Gate.objects.order_by("-id") if whole else Gate.objects.filter(lifted_at=None).order_by("-id")
    found = gates_out(list(rows[:NEWEST]))
    if as_json:
        screen.json(GateList(items=found, next_cursor=None).model_dump(mode="json"))
        return
    screen.table(COLUMNS, (row_of(screen, gate) for gate in found), empty="No gate is in place.")


@words.command(epilog=exit_codes())
@the_scope
@reason_option()
@as_json
@click.pass_obj
def place(screen: Screen, /, scope: str, reason: str, as_json: bool) -> None:
    """Send nothing more in SCOPE, once its workers have heard of it; what is under way ends. Last line: its id."""
    gate = place_gate(scope=scope, reason=reason, actor=shell_actor())
    if unknown := unknown_in(scope):
        screen.note(unknown)
    tell(screen, gate, as_json)


@words.command(epilog=exit_codes())
@the_scope
@reason_option()
@as_json
@click.pass_obj
def lift(screen: Screen, /, scope: str, reason: str, as_json: bool) -> None:
    """Let what SCOPE stopped go on."""
    tell(screen, lift_gate(scope=scope, reason=reason, actor=shell_actor()), as_json)


def tell(screen: Screen, gate: Gate, as_json: bool) -> None:
    (seen,) = gates_out([gate])
    if as_json:
        screen.json(seen.model_dump(mode="json"))
        return
    screen.say(*row_of(screen, seen))
    screen.line(str(gate.pk))


def row_of(screen: Screen, gate: GateOut) -> tuple[Cell, ...]:
    if gate.lifted_at is not None:
        state = Styled("lifted", "dim")
    else:
        state = Styled("coming", "yellow") if gate.not_yet_at else Styled("in force", "bold magenta")
    since = when(screen, gate.lifted_at or gate.created_at)
    return gate.scope, state, since, gate.actor, gate.reason, ", ".join(gate.not_yet_at)


class Command(RunsCommand):
    help = "Stop what runs send, in a scope, and let it go on."
    words = words
