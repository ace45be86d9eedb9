"""Effects of relatives that are the same but written otherwise: they wait for a person, too."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest

from runs.models import Run
from runs.relatives import equal
from runs.sdk import Call, RunView, Secret, Spawn, Tool, ToolContext, flow, tool
from runs.secrets import seal
from tests.recovery.test_fork import fork
from tests.recovery.test_fork_edit import judges as judges
from tests.rig.crew import Crew, start
from tests.rig.ledger import Ledger
from tests.rig.versions import serve_also, serving

pytestmark = pytest.mark.django_db(transaction=True)


def paying(function: Callable[..., Any], version: str = "1") -> Any:
    """Pays what its input says."""

    @flow(name="payer", version=version, tools=[tool(effect="unkeyed", name="pay")(function)])
    def payer(run: RunView) -> Any:
        yield Call("pay", **run.input)

    return serve_also(payer)


def whole(ctx: ToolContext, cents: int, to: str = "shop") -> str:
    return "paid"


def fraction(ctx: ToolContext, share: float = 1.0) -> str:
    return "paid"


def anything(ctx: ToolContext, parts: Any) -> str:
    return "paid"


def urgent(ctx: ToolContext, cents: int, to: str = "shop", urgent: bool = False) -> str:
    return "paid"


@pytest.mark.parametrize(
    ("function", "first", "again", "same"),
    [
        (whole, {"cents": 900}, {"cents": 900.0}, True),
        (whole, {"cents": 900}, {"cents": "900"}, True),
        (whole, {"cents": 900}, {"cents": 900, "to": "shop"}, True),
        (whole, {"cents": 900}, {"cents": 900, "to": "bank"}, False),
        (whole, {"cents": 900}, {"cents": 901}, False),
        (fraction, {"share": 2}, {"share": 2.0}, True),
        (fraction, {"share": 1.0}, {}, True),
        (fraction, {"share": 1.5}, {}, False),
        (anything, {"parts": [1, {"n": 2}]}, {"parts": [1.0, {"n": 2.0}]}, True),
        (anything, {"parts": [1, 2]}, {"parts": [2, 1]}, False),
    ],
)
def test_what_is_written_otherwise_is_still_the_same_call(
    judges: Crew, ledger: Ledger, function: Callable[..., Any], first: Any, again: Any, same: bool
) -> None:
    agent = paying(function)
    serving(judges.standing, agent)
    run_id = start("payer", first)
    assert judges.drive(run_id).status == "done"
    forked = fork(run_id, 1, edits=[{"seq": 1, "value": again}])
    seen = judges.drive(forked.id)
    assert seen.status == ("awaiting_approval" if same else "done"), seen.reason
    assert not same or "it is the same as step 1 of" in seen.reason


def test_a_parameter_that_came_with_a_release_makes_no_call_another(judges: Crew, ledger: Ledger) -> None:
    paying(whole)
    run_id = start("payer", {"cents": 900})
    assert judges.drive(run_id).status == "done"
    agent = paying(urgent, "2")
    serving(judges.standing, agent)
    forked = fork(run_id, 1, release="2")
    assert judges.drive(forked.id).status == "awaiting_approval"


def test_children_of_the_same_input_written_otherwise_are_the_same(judges: Crew, ledger: Ledger) -> None:
    @flow(name="sender", version="1")
    def sender(run: RunView) -> Any:
        yield Spawn("chain", {"steps": run.input["steps"]})

    serving(judges.standing, serve_also(sender))
    run_id = start("sender", {"steps": 1})
    judges.drive(run_id)
    forked = fork(run_id, 1, edits=[{"seq": 1, "value": {"steps": 1.0}}])
    seen = judges.drive(forked.id)
    assert (seen.status, Run.objects.filter(parent=forked.id).count()) == ("held", 0), seen.reason


def named(function: Callable[..., Any]) -> Tool:
    return tool(effect="keyed")(function)


def when(ctx: ToolContext, at: datetime) -> None: ...


def keyed_by(ctx: ToolContext, word: Secret[str], cents: int = 1) -> None: ...


def renamed(ctx: ToolContext, amount: int, to: str) -> None: ...


def open_ended(ctx: ToolContext, **more: Any) -> None: ...


@pytest.mark.parametrize(
    ("function", "mine", "theirs", "alike"),
    [
        (when, {"at": "2026-11-30T12:00:00Z"}, {"at": "2026-11-30T13:00:00+01:00"}, True),
        (when, {"at": "2026-11-30T12:00:00Z"}, {"at": "2026-11-30T12:00:01Z"}, False),
        (keyed_by, {"word": "open"}, {"word": "open", "cents": 1}, True),
        (whole, {"cents": 5}, {"cents": 5, "note": "of another release"}, True),
        (renamed, {"amount": 5, "to": "shop"}, {"cents": 5, "to": "shop"}, True),
        (renamed, {"amount": 5, "to": "shop"}, {"cents": 5, "to": "bank"}, False),
        (open_ended, {"a": 1}, {"a": 1, "b": 2}, False),
        (whole, {"cents": 5}, "no arguments at all", False),
    ],
)
def test_a_tool_knows_what_says_the_same_to_it(
    function: Callable[..., Any], mine: Any, theirs: Any, alike: bool
) -> None:
    assert named(function).takes_alike(mine, theirs) is alike


def test_secrets_are_opened_before_they_are_compared() -> None:
    takes = named(keyed_by).takes_alike
    assert equal({"word": seal("open")}, {"word": "open", "cents": 1.0}, takes)
    assert not equal({"word": seal("open")}, {"word": seal("shut")}, takes)
