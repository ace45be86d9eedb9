"""Runs by the hour: whose hours, their bars and marks, and the chart's axis."""

import uuid
from collections import Counter
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from runs.models import Release
from runs.pages import hours
from runs.pages.overview_numbers import Loss

pytestmark = pytest.mark.django_db


def at(hour: int, minute: int) -> datetime:
    return datetime(2031, 5, 5, hour, minute, tzinfo=UTC)


def test_hours_are_those_of_the_viewers_clock() -> None:
    now = at(10, 40)
    quarters = {at(10, 15): Counter(alone=3), at(9, 45): Counter(failed=1)}
    utc = hours.hours_of(quarters, UTC, now)
    assert (utc[-1].at.hour, utc[-1].alone, utc[-2].failed, len(utc)) == (10, 3, 1, 24)
    kathmandu = hours.hours_of(quarters, ZoneInfo("Asia/Kathmandu"), now)  # 16:25 there; 10:15 UTC is 16:00
    assert (kathmandu[-1].at.hour, kathmandu[-1].alone, kathmandu[-2].failed) == (16, 3, 1)


def test_marks_that_come_close_together_are_one() -> None:
    now = at(10, 40)
    lost = [Loss(uuid.uuid4(), f"w{n}", now - timedelta(minutes=n), "process died") for n in range(3)]
    Release.objects.all().delete()
    (mark,) = hours.marks_of(lost, None, now - timedelta(hours=24), UTC)
    assert mark.text == "lost w2 and 2 more"


def test_a_phone_is_shown_the_newest_hours_with_the_marks_among_them() -> None:
    now = at(10, 40)
    day = hours.hours_of({at(10, 15): Counter(alone=3), at(1, 0): Counter(failed=1)}, UTC, now)
    marks = [hours.Mark(now - timedelta(hours=20), "lost w1"), hours.Mark(now - timedelta(hours=1), "lost w2")]
    recent = hours.chart(day[-hours.NARROW :], marks)
    assert [mark["text"] for mark in recent.marks] == ["lost w2"] and "last 12 hours: 3 finished" in recent.said
    assert recent.bars[-1]["alone"] and float(recent.bars[-1]["x"]) + hours.BAR < recent.width < 390


@pytest.mark.parametrize(("most", "top"), [(0, 3), (1, 3), (4, 6), (63, 75), (1_000, 1050)])
def test_the_axis_has_three_round_steps(most: int, top: int) -> None:
    assert hours.scale(most) == top and top >= most and top % 3 == 0
