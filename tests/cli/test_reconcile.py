"""`manage.py reconcile`: what became of an intent in doubt, with evidence."""

import json
from pathlib import Path

import pytest

from runs.models import Run, Status
from runs.queries import entries_of
from tests.api.conftest import Desk
from tests.cli.manage import AtTerminal, manage, refused


@pytest.fixture
def doubt(desk: Desk) -> tuple[str, str]:
    """Run id and seq of a parcel that may have been sent."""
    manage("start", "parcels")
    desk.work()
    (row,) = manage("intents", "--state", "in_doubt").rows
    return row[0], row[1]


def test_happened_settles_it_with_a_result(desk: Desk, doubt: tuple[str, str]) -> None:
    words = ("--evidence", "the courier says so", "--result", '{"sent": true}', "--attempt", 1)
    done = manage("reconcile", *doubt, "happened", *words)
    assert done.code == 0 and done.last == doubt[0]
    desk.work()
    assert json.loads(manage("run", doubt[0], "--json").out)["result"] == {"sent": True}


def test_abort_ends_the_run(doubt: tuple[str, str]) -> None:
    done = manage("reconcile", *doubt, "abort", "--evidence", "nobody knows", "--json")
    assert json.loads(done.out)["status"] == "cancelled"


def test_a_terminal_shows_the_sends_and_asks(doubt: tuple[str, str], at_terminal: AtTerminal) -> None:
    words = ("never_happened", "--evidence", "the parcel is still here")
    terminal = at_terminal("reconcile", *doubt, *words)
    assert "send 1" in terminal.read_until("[y/N]")
    terminal.type("\n")
    assert terminal.end().code == 1
    assert at_terminal("reconcile", *doubt, *words, "--yes").end().code == 0
    assert Run.objects.get().status == Status.QUEUED


def test_what_is_wrong_is_refused(doubt: tuple[str, str]) -> None:
    assert "--evidence" in refused(manage("reconcile", *doubt, "happened"))
    assert "perhaps" in refused(manage("reconcile", *doubt, "perhaps", "--evidence", "x"))
    assert "--result" in refused(manage("reconcile", *doubt, "happened", "--evidence", "x", "--result", "{"))
    assert "cannot be asked" in refused(manage("reconcile", *doubt, "probe", "--evidence", "x"))
    assert "attempt 7" in refused(manage("reconcile", *doubt, "happened", "--evidence", "x", "--attempt", 7))


def test_a_file_and_an_id_go_with_the_evidence(doubt: tuple[str, str], tmp_path: Path) -> None:
    scan = tmp_path / "scan.pdf"
    scan.write_bytes(b"%PDF")
    words = ("--evidence", "see the scan", "--external-id", "p-9", "--file", scan)
    assert manage("reconcile", *doubt, "happened", *words).code == 0
    body = next(e.body for e in entries_of(Run.objects.get().id) if e.kind == "RECONCILE")
    assert (body["external_id"], body["file"]["name"], body["file"]["type"]) == ("p-9", "scan.pdf", "application/pdf")
    assert "--file" in refused(manage("reconcile", *doubt, "happened", *words[:-1], tmp_path / "none"))
