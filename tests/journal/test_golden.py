"""What earlier versions wrote is read by this one as it was read then."""

import json
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.db import connection

from journal import upcasters
from journal.encoding import decode, encode
from journal.entries import Kind
from journal.export import export_run
from journal.importing import import_journals
from journal.read import read_entries
from journal.verify import verify_run
from runs.state import fold
from tests.journal.golden import FOLDER, freeze, journals_in, missed, states_of, told

JOURNALS = sorted(FOLDER.glob("v*/*.jsonl"))
NAMES = [f"{path.parent.name}/{path.stem}" for path in JOURNALS]


@pytest.fixture(autouse=True)
def knows_version_0(monkeypatch: pytest.MonkeyPatch) -> None:
    """Version 0 was never released: it stands for a shape with other names, lifted as a real one would be."""

    def call(body: dict[str, Any]) -> dict[str, Any]:
        return {("args" if name == "arguments" else name): value for name, value in body.items()}

    def outcome(body: dict[str, Any]) -> dict[str, Any]:
        kept = {name: value for name, value in body.items() if name not in ("ok", "value")}
        if body["ok"]:
            return {"outcome": "succeeded", "result": body["value"], **kept}
        return {"outcome": "failed", "error": body["value"], **kept}

    monkeypatch.setitem(upcasters.UPCASTERS, ("TOOL_CALL", 0), call)
    monkeypatch.setitem(upcasters.UPCASTERS, ("OBS", 0), outcome)


@pytest.mark.parametrize("path", JOURNALS, ids=NAMES)
def test_a_golden_journal_is_folded_to_the_state_it_was_frozen_with(path: Path) -> None:
    stored = json.loads(path.with_suffix(".json").read_text())
    assert missed(stored, json.loads(json.dumps(states_of(journals_in(path))))) == []


@pytest.mark.django_db
@pytest.mark.parametrize("path", JOURNALS, ids=NAMES)
def test_a_golden_journal_is_taken_in_verified_and_exported_to_the_same_bytes(path: Path) -> None:
    lines = path.read_text().splitlines()
    with connection.cursor() as cursor:
        cursor.execute("SET TIME ZONE 'UTC'")
    runs = import_journals(lines)
    assert [line for run_id in runs for line in export_run(run_id)] == lines
    assert [fault for run_id in runs for fault in verify_run(run_id, payloads=False)] == []
    stored = json.loads(path.with_suffix(".json").read_text())
    read = {str(run_id): told(fold(run_id, read_entries(None, run_id))) for run_id in runs}
    assert read.keys() == stored.keys()
    assert all(read[run_id]["frontier"] == stored[run_id]["frontier"] for run_id in read)


@pytest.mark.parametrize("path", JOURNALS, ids=NAMES)
def test_what_is_read_of_a_golden_journal_is_encoded_to_the_same_bytes(path: Path) -> None:
    for line in map(json.loads, path.read_text().splitlines()):
        body = line["body"].encode()
        value = decode(body)
        if b'"$":"enum"' in body or b'"$":"dataclass"' in body or b'"$":"exception"' in body or b'"$":"erased"' in body:
            continue  # they come back as plain values: docs/journal-format.md
        assert encode(value) == body


def test_old_shapes_are_read_as_the_new_ones() -> None:
    (old,) = [path for path in JOURNALS if path.parent.name == "v0"]
    states = [fold(run_id, entries) for run_id, entries in journals_in(old).items()]
    assert [state.slots[1].args for state in states] == [{"amount_cents": 5}, {}]
    assert [state.slots[1].outcome for state in states] == ["succeeded", "failed"]


def test_every_kind_that_this_version_writes_has_its_golden_entry() -> None:
    found = {json.loads(line)["kind"] for path in JOURNALS for line in path.read_text().splitlines()}
    assert set(Kind) - found == set()


def test_a_state_is_frozen_once(tmp_path: Path) -> None:
    copy = tmp_path / "copy.jsonl"
    copy.write_text(JOURNALS[-1].read_text())
    freeze([copy])
    before = copy.with_suffix(".json").read_text()
    assert UUID(next(iter(json.loads(before))))
    with pytest.raises(FileExistsError):
        freeze([copy])
    assert copy.with_suffix(".json").read_text() == before
