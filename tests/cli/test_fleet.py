"""`manage.py` workers, agents, release, gate, token: what runs run on."""

import json

from runs.access import user_of_token
from runs.models import Gate
from tests.api.conftest import Desk
from tests.cli.manage import AtTerminal, manage, refused


def test_workers(desk: Desk, at_terminal: AtTerminal) -> None:
    (row,) = manage("workers").rows
    assert row[:5] == ["desk", "live", "0", "4", "threads"]
    (item,) = json.loads(manage("workers", "--json").out)["items"]
    assert item["name"] == "desk" and item["concurrency"] == 4
    assert "live" in at_terminal("workers").end().out


def test_agents_with_their_tools_and_what_journaling_costs(desk: Desk, at_terminal: AtTerminal) -> None:
    manage("start", "desk", "--input", '{"amount_cents": 1}')
    desk.work()
    rows = {row[0]: row for row in manage("agents").rows}
    assert rows["desk@1"][3] == "refund (keyed)" and float(rows["desk@1"][4]) >= 2 and int(rows["desk@1"][5]) > 100
    listed = json.loads(manage("agents", "--json").out)
    assert {item["name"] for item in listed["items"]} >= {"desk", "post"} and listed["next_cursor"] is None
    one = json.loads(manage("agents", "desk", "--json").out)
    assert one["name"] == "desk" and one["journaling"]["commits"] >= 2
    assert [row[0] for row in manage("agents", "desk").rows] == ["desk@1"]
    assert "commits" in at_terminal("agents", "desk", columns=160).end().out
    assert "nobody" in refused(manage("agents", "nobody"))


def test_releases(desk: Desk, at_terminal: AtTerminal) -> None:
    manage("start", "desk", "--input", '{"amount_cents": 1}')
    rows = {row[0]: row for row in manage("release", "list").rows}
    assert rows["desk@1"][1] == "1 open" and len(rows["desk@1"][3]) == 64
    listed = json.loads(manage("release", "list", "--json").out)
    assert {item["agent"] for item in listed["items"]} >= {"desk"}
    assert "desk@1" in at_terminal("release", "list", columns=160).end().out


def test_gates(desk: Desk, at_terminal: AtTerminal) -> None:
    placed = manage("gate", "place", "tool:refund", "--reason", "double bookings")
    gate = Gate.objects.get()
    assert placed.code == 0 and placed.last == str(gate.pk) and gate.actor.startswith("shell:")
    assert "double bookings" in refused(manage("gate", "place", "tool:refund", "--reason", "again"))
    (row,) = manage("gate", "list").rows
    assert row[0] == "tool:refund" and row[4] == "double bookings"
    assert json.loads(manage("gate", "list", "--json").out)["items"][0]["scope"] == "tool:refund"
    assert "tool:refund" in at_terminal("gate", "list").end().out
    lifted = json.loads(manage("gate", "lift", "tool:refund", "--reason", "mended", "--json").out)
    assert lifted["lifted_at"] and manage("gate", "list").out == ""
    assert manage("gate", "list", "--all").rows[0][1] == "lifted"


def test_a_gate_or_a_drain_of_nothing_that_is_known_says_so(desk: Desk) -> None:
    placed = manage("gate", "place", "tool:rfund", "--reason", "a slip")
    assert placed.code == 0 and "No agent has a tool rfund: nothing is stopped so far." in placed.err
    drained = manage("drain", "--scope", "worker:w-typo", "--reason", "a slip")
    assert drained.code == 0 and "No worker is called w-typo" in drained.err
    assert "nothing is stopped" not in manage("gate", "place", "tool:refund", "--reason", "known").err


def test_wrong_gates_are_refused(dsn: str) -> None:
    assert "everything" in refused(manage("gate", "place", "everything", "--reason", "x"))
    assert "--reason" in refused(manage("gate", "place", "all"))
    assert "all" in refused(manage("gate", "lift", "all", "--reason", "x"))
    assert "list" in refused(manage("gate"))


def test_tokens(dsn: str) -> None:
    made = manage("token", "create", "--user", "olga", "--role", "operator")
    user = user_of_token(made.last)
    assert user is not None and user.username == "olga" and user.has_perm("runs.start_run")
    assert "emperor" in refused(manage("token", "create", "--user", "olga", "--role", "emperor"))
    assert "--user" in refused(manage("token", "create"))


def test_tokens_are_listed_by_number_end_and_are_revoked(dsn: str, at_terminal: AtTerminal) -> None:
    first = manage("token", "create", "--user", "olga", "--role", "operator", "--name", "nightly").last
    second = manage("token", "create", "--user", "ada", "--days", "30").last
    newer, older = manage("token", "list").rows
    assert older[1:4] == ["olga", "nightly", "live"] and older[6] == "never" and newer[1] == "ada"
    assert [row[0] for row in manage("token", "list", "--user", "ada").rows] == [newer[0]]
    revoked = manage("token", "revoke", older[0])
    assert revoked.last == f"Token {older[0]} of olga is revoked."
    assert user_of_token(first) is None and user_of_token(second) is not None
    assert "no live token" in refused(manage("token", "revoke", older[0]))
    told = json.loads(manage("token", "list", "--json").out)["items"]
    assert [item["state"] for item in told] == ["live", "revoked"] and told[1]["revoked_by"].startswith("shell:")
    assert first not in str(told) and told[0]["expires_at"] > told[0]["created_at"]
    assert "revoked" in at_terminal("token", "list", columns=160).end().out


def test_scopes(dsn: str) -> None:
    manage("token", "create", "--user", "olga", "--role", "operator")
    assert manage("scope", "olga").rows == [["every agent"]]
    assert manage("scope", "olga", "--agent", "b", "--agent", "a").rows == [["a"], ["b"]]
    assert manage("scope", "olga").rows == [["a"], ["b"]]
    assert manage("scope", "olga", "--all").rows == [["every agent"]]
    assert "not both" in refused(manage("scope", "olga", "--all", "--agent", "a"))
    assert "no user of this name" in refused(manage("scope", "nobody", "--agent", "a"))
