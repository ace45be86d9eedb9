"""`manage.py approve`: one decision, under the digest that was seen."""

import json

import pytest

from runs.models import Run, Status
from tests.api import agents
from tests.api.conftest import Desk
from tests.cli.manage import AtTerminal, manage, refused


@pytest.fixture
def asked(desk: Desk) -> tuple[str, str, str]:
    """Run id, seq and digest of a refund that waits for approval."""
    manage("start", "desk", "--input", '{"amount_cents": 9000}')
    desk.work()
    (row,) = manage("intents").rows
    return row[0], row[1], row[7]


def test_with_the_digest_a_script_approves(desk: Desk, asked: tuple[str, str, str]) -> None:
    run, seq, digest = asked
    done = manage("approve", run, seq, "--digest", digest, "--note", "as agreed")
    assert done.code == 0 and done.last == run
    desk.work()
    assert Run.objects.get().status == Status.DONE and len(agents.CALLS) == 1


def test_without_a_terminal_the_digest_must_be_given_and_be_right(asked: tuple[str, str, str]) -> None:
    run, seq, _ = asked
    assert "--digest" in refused(manage("approve", run, seq))
    assert "--digest" in refused(manage("approve", run, seq, "--yes"))
    assert "not what you saw" in refused(manage("approve", run, seq, "--digest", "0" * 64))
    assert Run.objects.get().status == Status.AWAITING_APPROVAL


def test_a_denial_needs_a_note(desk: Desk, asked: tuple[str, str, str]) -> None:
    run, seq, digest = asked
    assert "reason" in refused(manage("approve", run, seq, "--deny", "--digest", digest))
    denied = manage("approve", run, seq, "--deny", "--digest", digest, "--note", "too much", "--json")
    assert json.loads(denied.out)["id"] == run
    desk.work()
    assert json.loads(manage("run", run, "--json").out)["result"]["outcome"] == "denied"
    assert agents.CALLS == []


def test_a_late_decision_learns_who_decided(asked: tuple[str, str, str]) -> None:
    run, seq, digest = asked
    manage("approve", run, seq, "--digest", digest)
    assert "shell:" in refused(manage("approve", run, seq, "--digest", digest))


def test_at_a_terminal_everything_is_shown_and_a_typed_y_is_asked_for(
    asked: tuple[str, str, str], at_terminal: AtTerminal
) -> None:
    run, seq, digest = asked
    terminal = at_terminal("approve", run, seq, NO_COLOR="1", columns=200)
    shown = terminal.read_until("[y/N]")
    assert '{"amount_cents":9000}' in shown and digest in shown and f"{run}:1" in shown
    terminal.type("no\n")
    assert terminal.end().code == 1 and Run.objects.get().status == Status.AWAITING_APPROVAL
    terminal = at_terminal("approve", run, seq)
    terminal.read_until("[y/N]")
    terminal.type("y\n")
    assert terminal.end().code == 0 and Run.objects.get().status == Status.QUEUED


def test_wrong_words_are_refused(asked: tuple[str, str, str]) -> None:
    run, _, digest = asked
    assert "no intent" in refused(manage("approve", run, 1, "--digest", digest))
    assert "SEQ" in refused(manage("approve", run, "x"))


def test_arguments_are_changed_and_asked_for_anew(desk: Desk, asked: tuple[str, str, str]) -> None:
    run, seq, digest = asked
    assert "an object" in refused(manage("approve", run, seq, "--digest", digest, "--edit", "[1]"))
    assert "amount_cents" in refused(manage("approve", run, seq, "--digest", digest, "--edit", "{}"))
    changed = manage("approve", run, seq, "--digest", digest, "--edit", '{"amount_cents": 7000}', "--note", "half")
    assert changed.code == 0 and changed.last == run
    desk.work()
    (row,) = manage("intents").rows
    assert row[7] != digest and row[9] == '{"amount_cents":7000}'
    assert manage("approve", run, seq, "--digest", row[7]).code == 0
    desk.work()
    assert Run.objects.get().status == Status.DONE and len(agents.CALLS) == 1


def test_a_question_is_asked_and_answered(desk: Desk, asked: tuple[str, str, str]) -> None:
    run, seq, digest = asked
    assert manage("approve", run, seq, "--digest", digest, "--ask", "Whose order is it?").code == 0
    assert "Whose order is it?" in refused(manage("approve", run, seq, "--digest", digest))
    assert "one thing" in refused(manage("approve", run, seq, "--answer", "mine", "--deny"))
    assert manage("approve", run, seq, "--answer", "Lena's").code == 0
    assert manage("approve", run, seq, "--digest", digest).code == 0
    desk.work()
    assert Run.objects.get().status == Status.DONE
