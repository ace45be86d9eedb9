from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from uuid import UUID

import pytest
from django.core.management import CommandError, call_command

from journal.append import append_person, create_head, new_run_id
from journal.entries import Draft
from journal.payloads import PayloadStore, payload_store
from journal.read import read_entries
from journal.verify import verify_run
from tests.journal.cast import draft, obs

pytestmark = pytest.mark.django_db
WORDS = ("--actor", "max", "--reason", "asked for by the customer")


@pytest.fixture(autouse=True)
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[PayloadStore]:
    payload_store.cache_clear()
    monkeypatch.setattr("django.conf.settings.HOLDFAST_DATA", tmp_path)
    yield payload_store()
    payload_store.cache_clear()


@pytest.fixture
def run(store: PayloadStore) -> UUID:
    create_head(run := new_run_id())
    large, shared = "x" * 50_000, "y" * 50_000
    results = [store.offload(run, {"result": value}) for value in (large, shared, shared)]
    entries = [
        draft("START"),
        *(Draft("OBS", body, n, n) for n, body in enumerate(results, 1)),
        obs(4, secret="s3cret"),
    ]
    append_person(run, entries, request_id=None, actor="olga")
    return run


def erase(run: UUID, *words: str) -> str:
    said = StringIO()
    call_command("journal", "erase", str(run), *words, *WORDS, stdout=said)
    return said.getvalue().strip()


def test_a_run_that_goes_on_keeps_its_journal(run: UUID) -> None:
    with pytest.raises(CommandError, match="has not ended"):
        erase(run)


def test_an_erased_entry_keeps_its_place_in_the_chain_and_loses_its_payload(run: UUID, tmp_path: Path) -> None:
    append_person(run, [draft("DONE")], request_id=None, actor="olga")
    assert erase(run, "--seq", "2", "--seq", "3", "--seq", "5") == "3 entries erased"
    entries = read_entries(None, run)
    assert [e.seq for e in entries if e.body.get("$") == "erased"] == [2, 3, 5]
    assert (entries[-1].kind, entries[-1].actor, entries[-1].body["erased"]) == ("NOTE", "max", [2, 3, 5])
    assert len(list((tmp_path / "payloads" / str(run)).iterdir())) == 1, "entry 4 still needs the shared one"
    assert verify_run(run) == []
    assert erase(run, "--seq", "2") == "0 entries erased"


def test_without_a_seq_all_is_erased(run: UUID, tmp_path: Path) -> None:
    append_person(run, [draft("DONE")], request_id=None, actor="olga")
    assert erase(run) == "6 entries erased"
    assert list((tmp_path / "payloads" / str(run)).iterdir()) == []
    assert verify_run(run) == []
