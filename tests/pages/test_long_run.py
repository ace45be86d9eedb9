"""A run of 10,000 entries: what a page draws of it stays small, whichever part it shows."""

from collections.abc import Sequence
from uuid import UUID

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from journal.entries import Entry
from runs.generate import generate
from runs.models import Run
from runs.pages import run_views
from runs.pages.ruler import MOST_MARKS
from runs.pages.run_page import WINDOW
from runs.short_ids import short_id
from runs.state import RunState, fold

pytestmark = pytest.mark.django_db(transaction=True)

ENTRIES = 10_000
LARGEST = 600_000  # bytes of a page


def test_a_journal_of_ten_thousand_entries_is_read_once_and_drawn_a_window_at_a_time(victor: Client) -> None:
    generate(1, ENTRIES, seed=7)
    address = f"/runs/{short_id(Run.objects.get().id)}"
    victor.get(address)  # follows the chain for the first time
    for query in ("", "?seq=300", "?axis=seq", "?after=5000&axis=time", "?at=5000", "?at=9000&with=100"):
        with CaptureQueriesContext(
            connection,
        ) as asked:
            page = victor.get(address + query).content
        assert page.count(b'class="wf-row"') == WINDOW and page.count(b'class="cell"') <= MOST_MARKS, query
        assert len(page) < LARGEST, query
        whole = [q for q in asked.captured_queries if "FROM journal_entry" in q["sql"] and "LIMIT NULL" in q["sql"]]
        assert len(whole) == 1, query
        assert len(asked) < 30, query


def test_the_state_at_the_end_is_not_folded_a_second_time(victor: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    generate(1, 100, seed=7)
    address = f"/runs/{short_id(Run.objects.get().id)}"
    folded: list[int] = []

    def counted(run_id: UUID, entries: Sequence[Entry]) -> RunState:
        folded.append(len(entries))
        return fold(run_id, entries)

    monkeypatch.setattr(run_views, "fold", counted)
    assert "Fold of entries 1 to 100 of 100" in victor.get(f"{address}/state").content.decode()
    assert folded == []
    victor.get(f"{address}/state?at=60")
    assert folded == [60]


def test_the_ruler_of_a_long_journal_says_how_many_entries_a_mark_stands_for(victor: Client) -> None:
    generate(1, 1_000, seed=7)
    page = victor.get(f"/runs/{short_id(Run.objects.get().id)}").content.decode()
    assert "One mark stands for 9 entries." in page and 'max="1000"' in page
    assert page.count('class="cell"') == 112


def test_the_state_of_a_long_run_shows_its_last_steps_and_counts_all(victor: Client) -> None:
    generate(1, 1_000, seed=7)
    answer = victor.get(f"/runs/{short_id(Run.objects.get().id)}/state?at=900&with=880").content.decode()
    assert "Fold of entries 1 to 900 of 1000" in answer and "the last 60 of" in answer
    assert "From seq 880 to seq 900" in answer and 'data-d="added"' in answer
    assert len(answer) < 200_000
