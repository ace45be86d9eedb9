"""The rules, pure: what happens next to an unsettled step, by effect class and by what the journal says."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from journal.entries import Entry
from runs.engine.rules import (
    Act,
    Ask,
    Asked,
    AwaitPerson,
    Fire,
    Join,
    Moment,
    RequestApproval,
    Send,
    WaitUntil,
    Withdraw,
    next_act,
    next_wait,
)
from runs.outcomes import Absent
from runs.policies import ANY_ONE
from runs.slots import Slot
from runs.state import RunState
from runs.tools import Retry, Tool, ToolContext

START = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
RUN = UUID(int=1)


def function(ctx: ToolContext) -> None: ...


def probe(ctx: ToolContext) -> Absent:
    return Absent()


def tool(effect: Any, **given: Any) -> Tool:
    asked = {"probe": probe} if effect == "probed" else {}
    return Tool(function, effect, **(asked | given))


def slot(*entries: tuple[str, dict[str, Any]], gate: str | None = None, kind: str = "TOOL_CALL") -> Slot:
    """Step 1 after these entries, one a second."""
    call = {"tool": "function", "args": {}, "key": "k", "effect": "", "digest": "d", "gate": gate}
    timer = {"verb": "set", "due": START.timestamp() + 60, "seconds": 60}
    child = {"verb": "spawned", "agent": "read", "input": None, "child": str(RUN), "release": "r"}
    body = {"TOOL_CALL": call, "TIMER": timer, "CHILD": child}[kind]
    state = RunState(RUN)
    for seq, (name, told) in enumerate([("PLAN", {"seen": 0}), (kind, body), *entries], 1):
        at = START + timedelta(seconds=seq)
        state.apply(Entry(RUN, seq, name, 1, None if name == "PLAN" else 1, None, 1, "worker", at, told))
    return state.slots[1]


def wait(given: Slot, after: float = 10.0, cancelling: bool = False, over: bool = False, ended: Any = None) -> Act:
    return next_wait(given, Moment(START.timestamp() + after, None, cancelling), over, ended)


def act(given: Slot, by: Tool, after: float = 10.0, digest: str = "d", **more: Any) -> Act:
    absent = more.pop("absent", False)
    moment = Moment(START.timestamp() + after, more.get("taken_over_at"), more.get("cancelling", False))
    asked = Asked(digest, ANY_ONE, "") if given.gate == "approval" else None
    return next_act(given, by, asked, moment, absent)


CHANGED = "the arguments or the tool have changed since it was approved"
ATTEMPT = ("ATTEMPT", {"attempt": 1, "source": "worker"})
UNKNOWN = ("OBS", {"outcome": "unknown", "error": "timed out"})
UNDECIDED = ("RECONCILE", {"verdict": "undecided", "evidence": "busy"})


def test_a_read_in_doubt_is_called_again() -> None:
    assert act(slot(), tool("read")) == Send("resume")


def test_a_keyed_call_in_doubt_is_sent_again_while_its_key_is_remembered() -> None:
    assert act(slot(), tool("keyed")) == Send("resume", doubt=True)
    assert isinstance(act(slot(), tool("keyed", key_ttl=5)), AwaitPerson)


def test_a_keyed_call_is_asked_first_where_it_can_be_and_sent_after_three_undecided() -> None:
    keyed = tool("keyed", probe=probe)
    assert act(slot(), keyed) == Ask()
    assert isinstance(act(slot(UNDECIDED), keyed, after=3.1), WaitUntil)
    assert act(slot(UNDECIDED), keyed, after=60) == Ask()
    assert act(slot(UNDECIDED, UNDECIDED, UNDECIDED), keyed, after=60) == Send("resume", doubt=True)


def test_a_keyed_call_that_answered_nothing_is_sent_again_with_backoff() -> None:
    keyed = tool("keyed", retry=Retry(backoff=10))
    early = act(slot(UNKNOWN), keyed, after=4)
    assert isinstance(early, WaitUntil) and 3 + 5 <= early.at - START.timestamp() <= 3 + 10
    assert act(slot(UNKNOWN), keyed, after=14) == Send("retry", doubt=True)


def test_a_probed_call_waits_for_what_is_still_in_flight_then_asks_and_never_sends_blindly() -> None:
    probed = tool("probed", max_in_flight=30)
    waiting = act(slot(), probed, after=10)
    assert isinstance(waiting, WaitUntil) and waiting.at == START.timestamp() + 2 + 30
    taken_over = act(slot(), probed, after=40, taken_over_at=START.timestamp() + 20)
    assert isinstance(taken_over, WaitUntil) and taken_over.at == START.timestamp() + 50
    assert act(slot(), probed, after=40) == Ask()
    assert act(slot(), probed, after=40, absent=True) == Send("resume")
    assert isinstance(act(slot(UNDECIDED, UNDECIDED, UNDECIDED), probed, after=99), AwaitPerson)


def test_an_unkeyed_call_in_doubt_waits_for_a_person() -> None:
    parked = act(slot(), tool("unkeyed"))
    assert isinstance(parked, AwaitPerson) and parked.status == "needs_reconciliation"


@pytest.mark.parametrize("effect", ["keyed", "probed", "unkeyed"])
def test_what_never_happened_by_a_persons_word_is_executed(effect: str) -> None:
    assert act(slot(("RECONCILE", {"verdict": "never_happened"})), tool(effect), after=99) == Send("operator")


@pytest.mark.parametrize(("effect", "waits"), [("read", False), ("keyed", False), ("probed", True), ("unkeyed", True)])
def test_what_never_happened_is_executed_once_nothing_of_it_can_be_under_way(effect: str, waits: bool) -> None:
    """Unless a key, or that it only reads, makes a second request harmless."""
    given = slot(("RECONCILE", {"verdict": "never_happened"}))
    by = tool(effect, max_in_flight=60)
    sent = START.timestamp() + 2
    soon = act(given, by, after=30)
    assert soon == Send("operator") if not waits else isinstance(soon, WaitUntil) and soon.at == sent + 60
    assert act(given, by, after=63) == Send("operator")


def test_a_key_that_is_forgotten_makes_nothing_harmless() -> None:
    given = slot(("RECONCILE", {"verdict": "never_happened"}))
    assert isinstance(act(given, tool("keyed", key_ttl=5, max_in_flight=60), after=30), WaitUntil)


def test_a_probe_that_a_person_asks_for_is_made_even_after_three_undecided() -> None:
    asked = slot(UNDECIDED, UNDECIDED, UNDECIDED, ("RECONCILE", {"verdict": "probe"}))
    assert act(asked, tool("probed"), after=99) == Ask()


def test_a_call_that_surely_did_not_act_is_sent_when_it_is_due() -> None:
    failed = slot(("ERROR", {"error": "busy", "due": START.timestamp() + 30}))
    assert isinstance(act(failed, tool("unkeyed"), after=29), WaitUntil)
    assert act(failed, tool("unkeyed"), after=31) == Send("retry")


def test_a_gated_call_waits_for_its_approval_and_for_no_other() -> None:
    requested = ("APPROVAL", {"verdict": "requested", "digest": "d"})
    granted = ("APPROVAL", {"verdict": "granted", "digest": "d"})
    keyed = tool("keyed")
    assert act(slot(gate="approval"), keyed) == RequestApproval()
    waiting = act(slot(requested, gate="approval"), keyed)
    assert waiting == AwaitPerson("awaiting_approval", "function (step 1) waits for approval")
    anew = ("APPROVAL", {"verdict": "requested", "digest": "other", "why": "it was edited"})
    again = act(slot(requested, granted, anew, gate="approval"), keyed, digest="other")
    assert isinstance(again, AwaitPerson) and again.why.endswith("waits for approval, anew: it was edited")
    assert act(slot(requested, granted, gate="approval"), keyed) == Send("approval")
    assert act(slot(requested, granted, gate="approval"), keyed, digest="other") == RequestApproval(CHANGED)
    changed = act(slot(requested, gate="approval"), keyed, digest="other")
    assert changed == RequestApproval("the tool has changed since it was asked for")


def test_a_granted_call_whose_effect_is_absent_is_not_sent_under_other_code() -> None:
    granted = slot(("APPROVAL", {"verdict": "granted", "digest": "d"}), ATTEMPT, gate="approval")
    assert act(granted, tool("probed"), absent=True) == Send("resume")
    assert act(granted, tool("probed"), absent=True, digest="other") == RequestApproval(CHANGED)


def test_cancelling_withdraws_what_was_surely_not_done_and_finds_out_the_rest() -> None:
    assert act(slot(gate="approval"), tool("keyed"), cancelling=True) == Withdraw()
    assert act(slot(), tool("read"), cancelling=True) == Withdraw()
    assert act(slot(), tool("keyed", probe=probe), cancelling=True) == Ask()
    assert isinstance(act(slot(), tool("keyed"), cancelling=True), AwaitPerson)
    assert isinstance(act(slot(), tool("unkeyed"), cancelling=True), AwaitPerson)
    assert act(slot(), tool("probed"), absent=True, cancelling=True) == Withdraw()


def test_a_timer_fires_when_it_is_due() -> None:
    assert isinstance(wait(slot(kind="TIMER"), after=59), WaitUntil)
    assert wait(slot(kind="TIMER"), after=60) == Fire()
    assert wait(slot(kind="TIMER"), after=1, cancelling=True) == Withdraw()
    assert wait(slot(kind="TIMER"), after=1, over=True) == Withdraw("another came first")


def test_a_child_is_joined_when_it_has_ended_and_waited_for_when_its_tree_is_cancelled() -> None:
    how = {"outcome": "succeeded", "result": 1}
    assert wait(slot(kind="CHILD"), ended=how) == Join(how)
    assert isinstance(wait(slot(kind="CHILD"), cancelling=True), WaitUntil)
    assert wait(slot(kind="CHILD"), over=True) == Withdraw("another came first")
