"""`manage.py journal`: what scripts read of it. What it does is tested in tests/journal."""

import json
from pathlib import Path
from uuid import uuid4

import pytest

from journal.erase import erase_entries
from runs.access import shell_actor
from runs.generate import generate
from runs.models import Run, Status
from runs.queries import entries_of
from runs.short_ids import short_id
from tests.cli.manage import AtTerminal, manage, refused


@pytest.fixture
def run(dsn: str) -> Run:
    generate(20, 8)
    return Run.objects.filter(status=Status.DONE).latest("created_at")


def test_verify(run: Run) -> None:
    assert manage("journal", "verify", run.id).last == "1 journals are what was written"
    assert json.loads(manage("journal", "verify", "--all", "--json").out) == {"journals": 20, "faults": []}
    erase_entries(run.id, None, actor="max", reason="asked for")
    assert manage("journal", "verify", run.id).code == 0


def test_a_run_is_named_by_its_short_name_too(run: Run) -> None:
    name = short_id(run.id)
    assert manage("journal", "verify", name).last == "1 journals are what was written"
    assert manage("journal", "export", name, name.upper()).out == 2 * manage("journal", "export", run.id).out
    words = ("--actor", "max", "--reason", "asked for")
    assert manage("journal", "erase", name, "--seq", 1, *words).last == "1 entries erased"
    assert "There is no such run" in refused(manage("journal", "export", "r-00000000"))


def test_verify_wants_one_run_or_all(run: Run) -> None:
    assert "--all" in refused(manage("journal", "verify"))
    assert "--all" in refused(manage("journal", "verify", run.id, "--all"))
    assert "no run" in refused(manage("journal", "verify", uuid4()))
    assert "r-1" in refused(manage("journal", "verify", "r-1"))


def test_long_work_shows_how_far_it_is_at_a_terminal_only(run: Run, at_terminal: AtTerminal) -> None:
    assert manage("journal", "verify", "--all").err == ""
    done = at_terminal("journal", "verify", "--all").end()
    assert "journals" in done.out and "20/20" in done.out and done.last == "20 journals are what was written"


def test_export_and_import(run: Run, tmp_path: Path) -> None:
    lines = manage("journal", "export", run.id).out
    assert [json.loads(line)["seq"] for line in lines.splitlines()] == list(range(1, 9))
    (tmp_path / "journals").write_text(lines)
    assert "here already" in refused(manage("journal", "import", tmp_path / "journals"))
    assert "here already" in refused(manage("journal", "import", "-", stdin=lines))
    assert "No such file" in refused(manage("journal", "import", tmp_path / "none"))


def test_erase(run: Run) -> None:
    words = ("--actor", "max", "--reason", "asked for")
    assert manage("journal", "erase", run.id, "--seq", 1, "--seq", 2, *words).last == "2 entries erased"
    again = manage("journal", "erase", run.id, "--seq", 1, *words)
    assert (again.last, again.err) == ("0 entries erased", "They were erased before.\n")
    assert "no such entry. (98, 99)" in refused(manage("journal", "erase", run.id, "--seq", 99, "--seq", 98, *words))
    assert "--reason" in refused(manage("journal", "erase", run.id, "--actor", "max"))
    assert "Give a reason" in refused(manage("journal", "erase", run.id, "--reason", " "))
    assert manage("journal", "erase", run.id, "--seq", 3, "--reason", "asked for").code == 0
    assert [entry.actor for entry in entries_of(run.id)][-2:] == ["max", shell_actor()]
