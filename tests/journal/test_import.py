import json
from io import StringIO
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
import pytest
from django.core.management import CommandError, call_command

from journal.errors import NoSuchRun
from journal.export import export_run
from journal.read import read_entries, read_head
from journal.verify import verify_run
from tests.journal.cast import draft, new_run, obs, person

type Conn = psycopg.Connection[Any]


@pytest.fixture
def lines(conn: Conn) -> list[str]:
    """An exported journal of another database."""
    run = new_run(conn, epoch=3)
    person(conn, run, "r", draft("START"), draft("SIGNAL"))
    person(conn, run, "s", obs(1, text="zoë"), actor="zoë")
    conn.execute("SELECT journal_erase_v1(%s, 2)", (run,))
    return list(export_run(run, conn))


def take(lines: list[str], folder: Path) -> None:
    (folder / "journals").write_text("\n".join(lines) + "\n")
    call_command("journal", "import", str(folder / "journals"), stdout=StringIO())


@pytest.mark.django_db
def test_an_exported_journal_comes_in_as_it_was(conn: Conn, lines: list[str], tmp_path: Path) -> None:
    take(lines, tmp_path)
    run = UUID(json.loads(lines[0])["run_id"])
    assert read_entries(None, run) == read_entries(conn, run) != []
    assert read_head(None, run) == read_head(conn, run)
    assert verify_run(run, payloads=False) == [] and list(export_run(run)) == lines
    with pytest.raises(CommandError, match="is here already"):
        take(lines, tmp_path)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("body", "{}"),
        ("actor", "ada"),
        ("epoch", 4),
        ("seq", 4),
        ("link", None),
        ("recorded_at", "2026-01-01T00:00:00+00:00"),
    ],
)
def test_a_changed_line_is_refused_and_nothing_comes_in(
    lines: list[str], tmp_path: Path, field: str, value: Any
) -> None:
    changed = json.loads(lines[2])
    with pytest.raises(CommandError, match=rf"cannot be imported\. {changed['run_id']} "):
        take([*lines[:2], json.dumps(changed | {field: value})], tmp_path)
    with pytest.raises(CommandError, match="Not a line"):
        take([*lines, "{}"], tmp_path)
    with pytest.raises(NoSuchRun):
        list(export_run(changed["run_id"]))


@pytest.mark.django_db
def test_a_line_left_out_is_refused(lines: list[str], tmp_path: Path) -> None:
    for n in range(3):
        with pytest.raises(CommandError, match="cannot be imported"):
            take(lines[:n] + lines[n + 1 :], tmp_path)
