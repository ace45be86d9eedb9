"""Where things stand on the line and on the ruler. Pure."""

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from journal.entries import Entry
from runs.pages.asked import Asked
from runs.pages.axis import axis_over, roomy, seq_axis
from runs.pages.json_lines import json_lines
from runs.pages.ruler import MOST_MARKS, MOST_NUMBERS, ruler
from runs.state import RunState

START = datetime(2026, 11, 17, 14, 2, 11, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def test_a_wait_is_folded_and_the_rest_keeps_its_proportions() -> None:
    axis = axis_over([at(0), at(10), at(1_000), at(1_020)], at(1_020))
    assert axis.folds == [(31.0, 7.0)]
    assert (axis.place(at(0)), axis.place(at(10)), axis.place(at(1_000)), axis.place(at(1_020))) == (0, 31, 38, 100)
    assert all(not 31 < x < 38 for x, _ in axis.ticks)


def test_unfolded_time_is_as_long_as_it_was() -> None:
    axis = axis_over([at(0), at(10), at(1_000)], at(1_000), folded=False)
    assert axis.folds == [] and axis.place(at(10)) == 1.0 and axis.place(at(500)) == 50.0


def test_by_seq_every_entry_is_as_wide_as_any_other_and_a_bar_begins_at_the_last_entry_of_its_time() -> None:
    axis = seq_axis(11, [at(0), at(5), at(5), at(900)])
    bar = axis.bar("call", at(5), at(900), 14)
    assert (bar.x, bar.width) == (62.5, 25.0)
    assert axis.bar("pt", at(0), at(0), 11).x == 12.5
    assert axis.bar("open", at(5), at(900)).width == 37.5  # to the end: it goes on


def test_a_run_that_goes_on_leaves_the_bars_before_an_entry_where_they_were() -> None:
    times = [at(n) for n in range(100)]
    moved = sum(
        axis_over(times[:n], times[n - 1], grows=True).place(at(1))
        != axis_over(times[: n + 1], times[n], grows=True).place(at(1))
        for n in range(10, 99)
    )
    assert moved <= 12
    assert roomy(100) >= 100 and roomy(0) == 0


def journal(size: int) -> tuple[list[Entry], RunState]:
    run_id = uuid4()
    entries = [Entry(run_id, n, "NOTE", 1, None, None, 1, "worker", at(n), {}) for n in range(1, size + 1)]
    state = RunState(run_id)
    state.seq = size
    return entries, state


@pytest.mark.parametrize("size", [1, 2, 23, 119, 121, 1_000, 12_345])
def test_a_ruler_has_few_marks_and_few_numbers_however_long_the_journal(size: int) -> None:
    scale = ruler(*journal(size), held=False)
    assert len(scale.marks) <= MOST_MARKS and len(scale.numbers) <= MOST_NUMBERS + 1
    assert scale.marks[0].first == 1 and scale.marks[-1].last == size
    assert all(0 <= mark.x <= 100 for mark in scale.marks)
    assert [n for _, n in scale.numbers] == sorted({n for _, n in scale.numbers})


def test_an_address_keeps_what_it_does_not_change_and_leaves_out_what_goes_without_saying() -> None:
    asked = Asked(seq=5, axis="seq", after=200)
    assert asked.query() == "?seq=5&axis=seq&after=200"
    assert asked.query(axis="folded", after=None) == "?seq=5"
    assert asked.query(at=9, against=4, tab="state") == "?seq=5&at=9&with=4&axis=seq&after=200"
    assert Asked().query() == "?"


def test_lines_of_json_have_their_commas_and_close_what_they_open() -> None:
    lines = json_lines({"a": [1, {"b": None}], "c": "x"})
    assert [(line.edge, line.name, line.text, line.comma) for line in lines] == [
        ("open", None, "{", ""), ("open", '"a"', "[", ""), ("", None, "1", ","), ("open", None, "{", ""),
        ("", '"b"', "null", ""), ("close", None, "}", ""), ("close", None, "]", ","), ("", '"c"', '"x"', ""),
        ("close", None, "}", ""),
    ]  # fmt: skip
