"""Old shapes are lifted at read; what this code does not know is kept, and where it must not guess it steps aside."""

from __future__ import annotations

from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client

from journal import upcasters
from journal.append import append_person
from journal.entries import VERSIONS, Draft, Kind
from journal.export import export_run
from journal.importing import import_journals
from journal.read import read_entries
from journal.verify import verify_run
from recovery.sweep import Sweep
from runs.access import ensure_demo_users
from runs.models import Run
from runs.queries import state_of
from tests.journal.cast import new_run, person
from tests.rig.crew import Crew, crew, journal, start
from tests.rig.fixtures import ledger
from tests.rig.ledger import Ledger

__all__ = ["crew", "ledger"]

type Conn = psycopg.Connection[Any]

# What some kind has in its body.
FIELDS = (
    "verb",
    "moves",
    "seen",
    "tool",
    "args",
    "outcome",
    "result",
    "error",
    "verdict",
    "due",
    "text",
    "plan",
    "shape",
)


@pytest.fixture
def note_is_three(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if NOTE had changed its shape twice since."""
    monkeypatch.setitem(VERSIONS, Kind.NOTE, 3)
    monkeypatch.setitem(upcasters.UPCASTERS, ("NOTE", 1), lambda body: {**body, "said": body["text"]})
    monkeypatch.setitem(upcasters.UPCASTERS, ("NOTE", 2), lambda body: {**body, "words": body["said"].split()})


@pytest.mark.usefixtures("note_is_three")
def test_an_old_body_is_lifted_step_by_step_at_read_and_stays_as_it_is_in_the_journal(conn: Conn) -> None:
    run = new_run(conn)
    old, newer = {"text": "a b", "extra": 1}, {"said": "c d"}
    person(conn, run, "r", Draft("NOTE", old, v=1), Draft("NOTE", newer, v=2), Draft("NOTE", {"words": ["e"]}))
    read = read_entries(conn, run)
    assert [e.body["words"] for e in read] == [["a", "b"], ["c", "d"], ["e"]]
    assert (read[0].body["extra"], [e.v for e in read]) == (1, [1, 2, 3])
    assert '\\"text\\":\\"a b\\",\\"extra\\":1' in next(export_run(run, conn))
    assert verify_run(run, conn=conn) == []


@pytest.mark.usefixtures("note_is_three")
def test_an_erased_body_is_not_lifted(conn: Conn) -> None:
    run = new_run(conn)
    person(conn, run, "r", Draft("NOTE", {"text": "x"}, v=1))
    conn.execute("SELECT journal_erase_v1(%s, 1)", (run,))
    assert set(read_entries(conn, run)[0].body) == {"$", "digest"}


def test_every_version_that_was_ever_written_has_its_upcaster() -> None:
    missing = [(kind, v) for kind, newest in VERSIONS.items() for v in range(1, newest)]
    assert [step for step in missing if step not in upcasters.UPCASTERS] == []
    assert set(VERSIONS) == {str(kind) for kind in Kind}


@pytest.mark.django_db(transaction=True)
def test_unknown_kinds_and_fields_go_through_export_and_import_unharmed(conn: Conn, dsn: str, tmp_path: Path) -> None:
    run = new_run(conn)
    strange = {"what": {"$": "quaternion", "parts": [1, 2]}, "critical": False}
    person(conn, run, "r", Draft("START", {"agent": "a", "colour": "blue"}), Draft("BLINK", strange, v=7))
    lines = list(export_run(run, conn))
    import_journals(lines)
    with psycopg.connect(dsn, autocommit=True, options="-c TimeZone=UTC") as there:
        assert list(export_run(run, there)) == lines
        start_entry, blink = read_entries(there, run)
    assert (start_entry.body["colour"], blink.kind, blink.v, blink.body) == ("blue", "BLINK", 7, strange)
    said = StringIO()
    call_command("journal", "verify", str(run), stdout=said)


# -- runs -------------------------------------------------------------------------------------------------------------


def add(run_id: UUID, kind: str, body: dict[str, Any], v: int = 1) -> None:
    append_person(run_id, [Draft(kind, body, v=v)], request_id=None, actor="newer")


def test_an_unknown_kind_is_passed_over(crew: Crew, ledger: Ledger) -> None:
    run_id = start("keyed", {})
    add(run_id, "BLINK", {"critical": False}, v=4)
    assert crew.drive(run_id).status == "done"


@pytest.mark.parametrize(
    ("kind", "body", "v"),
    [("BLINK", {"critical": True}, 1), ("CONTROL", {"verb": {"new": "shape"}}, 3)],
    ids=["critical", "newer"],
)
def test_what_must_not_be_passed_over_parks_the_run_for_a_newer_worker(
    crew: Crew, ledger: Ledger, monkeypatch: pytest.MonkeyPatch, kind: str, body: dict[str, Any], v: int
) -> None:
    run_id = start("keyed", {})
    add(run_id, kind, body, v)
    run = crew.drive(run_id)
    assert (run.status, run.wake_at, run.session_id) == ("waiting_for_version", None, None)
    assert run.reason == f"entry 2, {kind} version {v}, was written by a newer worker: waits for one"
    assert journal(run_id) == ["START", kind]
    shown = state_of(run_id)
    assert shown.agent == "keyed" and shown.beyond is not None and shown.seq == 2
    # The code learns of it, as a newer worker's would.
    monkeypatch.setitem(VERSIONS, kind, v)
    assert crew.hire().advance(run_id, run.release_id) is not None
    assert Run.objects.get(id=run_id).status == "done"


@pytest.mark.parametrize(("kind", "v"), [("BLINK", 3), *((str(kind), VERSIONS[kind] + 1) for kind in Kind)])
def test_pages_and_api_show_it_as_it_is(crew: Crew, ledger: Ledger, kind: str, v: int) -> None:
    run_id = start("keyed", {})
    crew.drive(run_id)
    add(run_id, kind, {name: {"new": ["shape"]} for name in FIELDS}, v)
    ensure_demo_users("four-words-of-the-demo")
    browser = Client()
    browser.force_login(User.objects.get(username="victor"))
    last = len(journal(run_id))
    for address in (f"/runs/{run_id}", f"/runs/{run_id}?seq={last}"):
        page = browser.get(address)
        assert page.status_code == 200 and "shape" in page.content.decode()
    told = browser.get(f"/api/v1/runs/{run_id}/journal")
    assert told.status_code == 200 and told.json()["items"][-1]["kind"] == kind


def test_an_entry_of_a_newer_worker_stops_a_run_under_way_at_its_checkpoint(crew: Crew, ledger: Ledger) -> None:
    run_id, worker = start("chain", {"steps": 3, "effect": "keyed"}), crew.hire()
    written = worker.committer.append

    def also_newer(append: Any) -> Any:
        if any(draft.kind == Kind.OBS and draft.step == 1 for draft in append.entries):
            add(run_id, "SIGNAL", {"critical": True, "name": {}}, v=2)
        return written(append)

    worker.committer.append = also_newer  # type: ignore[method-assign]
    park = worker.advance(run_id, Run.objects.get(id=run_id).release_id)
    assert park is not None and park.status == "waiting_for_version" and "entry 4, SIGNAL version 2" in park.reason
    assert journal(run_id) == ["START", "PLAN", "TOOL_CALL:1", "SIGNAL", "OBS:1"], "its outcome is kept"


@pytest.fixture
def sent() -> list[UUID]:
    return []


@pytest.fixture
def sweep(crew: Crew, sent: list[UUID]) -> Iterator[Sweep]:
    sweep = Sweep(crew.dsn, lease=0.0, every=0.05, dispatch=lambda run_id, release_id: not sent.append(run_id))
    yield sweep
    sweep.close()


def test_the_sweep_sends_such_a_run_when_another_worker_has_come_or_after_a_minute(
    crew: Crew, ledger: Ledger, sweep: Sweep, sent: list[UUID]
) -> None:
    run_id = start("keyed", {})
    add(run_id, "BLINK", {"critical": True})
    crew.drive(run_id)
    for _ in range(3):
        sweep.once()
    assert sent == [], "the worker that gave it back still serves its release: it is not asked again"
    crew.hire()
    sweep.once()
    assert sent == [run_id] and Run.objects.get(id=run_id).status == "queued"
    crew.drive(run_id)
    with psycopg.connect(crew.dsn, autocommit=True) as conn:
        conn.execute("UPDATE runs_run SET since = since - interval '61 s'")
    sweep.once()
    assert sent == [run_id, run_id], "a worker that knows more may have been there all along"
