"""`manage.py intents`: what waits for somebody."""

import json

from tests.api.conftest import Desk
from tests.cli.manage import AtTerminal, manage, refused


def waiting(desk: Desk) -> None:
    for agent, input in (("desk", '{"amount_cents": 9000}'), ("parcels", "null")):
        manage("start", agent, "--input", input)
        desk.work()


def test_a_line_an_intent_with_the_exact_arguments_and_the_digest(desk: Desk) -> None:
    waiting(desk)
    approval, doubt = sorted(manage("intents").rows, key=lambda row: row[4])
    assert approval[3:5] == ["refund", "awaiting_approval"] and approval[9] == '{"amount_cents":9000}'
    assert len(approval[7]) == 64 and approval[8].endswith(":1")
    assert doubt[3:5] == ["parcel", "in_doubt"]


def test_states_and_pages(desk: Desk) -> None:
    waiting(desk)
    assert [row[3] for row in manage("intents", "--state", "in_doubt").rows] == ["parcel"]
    first = json.loads(manage("intents", "--json", "--limit", 1).out)
    rest = json.loads(manage("intents", "--json", "--cursor", first["next_cursor"]).out)
    assert [item["tool"] for item in first["items"] + rest["items"]] == ["refund", "parcel"]
    assert rest["next_cursor"] is None
    assert "--cursor" in manage("intents", "--limit", 1).err


def test_a_terminal_gets_a_table(desk: Desk, at_terminal: AtTerminal) -> None:
    assert "Nothing waits." in at_terminal("intents").end().out
    waiting(desk)
    out = at_terminal("intents", NO_COLOR="1").end().out
    assert "awaiting approval" in out and "amount_cents: 9000" in out


def test_wrong_words_are_refused(dsn: str) -> None:
    assert "--state" in refused(manage("intents", "--state", "lost"))
    assert "--cursor" in refused(manage("intents", "--cursor", "r-1"))
