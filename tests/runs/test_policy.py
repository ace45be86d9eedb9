"""What a policy may say, and where it is kept: in the tool's contract, in its digest, in each request."""

from typing import Any
from uuid import UUID

import pytest

from runs.digests import approval_digest
from runs.policies import ANY_ONE
from runs.sdk import Policy, Tool, ToolContext, tool
from tests.rig.crew import Crew, start
from tests.rig.ledger import Ledger
from tests.runs.policing import approvals, asks, listed, the_slot
from tests.runs.policing import desk as desk

RUN = UUID(int=1)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"group": ""}, "group="),
        ({"group": 7}, "group="),
        ({"quorum": 0}, "quorum="),
        ({"quorum": True}, "quorum="),
        ({"quorum": 1.5}, "quorum="),
        ({"four_eyes": "yes"}, "four_eyes="),
        ({"ttl": 0}, "ttl="),
        ({"ttl": float("nan")}, "ttl="),
        ({"ttl": "1h"}, "ttl="),
        ({"ttl": True}, "ttl="),
        ({"on_expiry": "drop"}, "'park' or 'deny'"),
        ({"on_expiry": "deny"}, "needs ttl="),
        ({"remind_every": 0.5}, "from 1 on"),
        ({"remind_every": -1}, "remind_every="),
    ],
)
def test_what_makes_no_sense_is_refused_with_what_to_write(given: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        Policy(**given)


def test_a_policy_reads_back_from_its_record_whatever_an_other_version_wrote() -> None:
    policy = Policy("finance", 2, ttl=60, on_expiry="deny", remind_every=10)
    assert Policy.of(policy.content) == policy
    assert Policy.of(policy.content | {"unheard": 1}) == policy
    assert Policy.of(None) == ANY_ONE == Policy(four_eyes=False)
    assert Policy.of({"quorum": "all"}) == Policy(), "what cannot be read is not taken as less"


def function(ctx: ToolContext, amount: int, memo: str = "") -> dict[str, int]:
    return {"amount": amount}


def test_true_is_any_one_approver_and_a_predicate_may_name_a_policy() -> None:
    strict = Policy(quorum=2)
    by_amount = Tool(function, "keyed", approval=lambda args: strict if args["amount"] > 9 else args["amount"] > 5)
    assert [by_amount.policy_for({"amount": n}) for n in (1, 6, 10)] == [None, ANY_ONE, strict]
    assert Tool(function, "keyed", approval=True).policy_for({}) == ANY_ONE
    assert Tool(function, "keyed").policy_for({}) is None


@pytest.mark.parametrize("given", ["approver", 1, None])
def test_what_is_no_policy_is_refused_where_the_tool_is_declared(given: Any) -> None:
    with pytest.raises(ValueError, match="approval= is True, a Policy"):
        Tool(function, "keyed", approval=given)
    with pytest.raises(ValueError, match="canonical= is a function"):
        Tool(function, "keyed", canonical="amount")  # type: ignore[arg-type]


def test_the_contract_holds_the_policy_and_the_result_s_schema() -> None:
    contract = Tool(function, "keyed", approval=Policy(ttl=60)).contract
    assert contract["approval"] == Policy(ttl=60).content
    assert contract["returns"] == {"type": "object", "additionalProperties": {"type": "integer"}}
    assert contract["canonical"] is False


class Opaque:
    """JSON schema has no words for it."""


def opaque(ctx: ToolContext) -> Opaque:
    return Opaque()


def test_a_result_that_has_no_schema_is_none_and_never_a_fault() -> None:
    assert Tool(opaque, "read").contract["returns"] is None
    assert Tool(opaque, "read").result_fault(Opaque()) is None


def test_another_policy_is_another_digest() -> None:
    digests = {
        approval_digest(Tool(function, "keyed", approval=approval), {"amount": 1}, RUN, 1)
        for approval in (True, Policy(), Policy(quorum=2), Policy(ttl=60))
    }
    assert len(digests) == 4


def test_the_digest_covers_the_fields_that_the_tool_names() -> None:
    by_amount = Tool(function, "keyed", approval=True, canonical=lambda args: {"amount": args["amount"]})

    def digest(**args: Any) -> str:
        return approval_digest(by_amount, args, RUN, 1)

    assert digest(amount=1, memo="a") == digest(amount=1, memo="b") != digest(amount=2, memo="a")
    assert by_amount.fields_of({"amount": 1, "memo": "a"}) == {"amount": 1}


def test_where_the_fields_cannot_be_named_all_arguments_are_bound() -> None:
    broken = Tool(function, "keyed", approval=True, canonical=lambda args: {"amount": args["sum"]})
    assert broken.fields_of({"amount": 1}) is None
    one, other = (approval_digest(broken, {"amount": 1, "memo": memo}, RUN, 1) for memo in "ab")
    assert one != other


def test_a_request_says_under_which_policy_and_release_and_until_when(desk: Crew, ledger: Ledger) -> None:
    run_id = asks(desk, ttl=600, quorum=2, group="approver")
    (asked,) = approvals(run_id)
    assert asked.body["policy"] == Policy(ttl=600, quorum=2).content
    assert len(asked.body["release"]) == 64 and asked.actor == "system"
    assert asked.body["expires"] == pytest.approx(asked.recorded_at.timestamp() + 600, abs=1)
    record = listed(run_id)
    assert record["policy"] == {"group": "approver", "quorum": 2, "four_eyes": True, "on_expiry": "park"}
    assert record["summary"] == "Charge 400 cents" and record["asked_by"] == "sdk" and record["granted"] == []
    assert record["digest"] == the_slot(run_id).digest and record["key"] == f"{run_id}:1"
    assert record["deadline"] and not record["expired"] and record["question"] is None


def test_a_request_names_the_fields_that_it_binds(desk: Crew, ledger: Ledger) -> None:
    run_id = start("pays-to", {"amount_cents": 3, "memo": "for the cat"})
    desk.drive(run_id)
    assert approvals(run_id)[0].body["fields"] == {"amount_cents": 3}


@pytest.mark.parametrize("name", ["two words", "line\nbreak", "\u202ehidden", "x" * 201])
def test_a_tools_name_is_one_that_a_gate_can_say(name: str) -> None:
    with pytest.raises(ValueError, match="no spaces"):
        tool(effect="read", name=name)(lambda ctx: None)
