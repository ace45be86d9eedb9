"""What the page of a dry replay shows: one result beside the journal that it was made from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django.utils.http import urlencode

from journal.entries import Entry
from recovery.fork_points import fork_points
from recovery.models import Purpose, Replay
from recovery.pages.replay_points import DIVERGES, MODEL, TEXT, Cell, Point, cells_of, diff_of, points_of, strip_says
from recovery.pages.targets import Target
from runs.models import Release, Run
from runs.pages.facts import Pin, model_of, pin_of
from runs.pages.text_diff import TextDiff
from runs.queries import entries_of
from runs.state import RunState, fold

CHANGES = "changes"


@dataclass
class ReplayPage:
    """What the page shows; read when it is drawn."""

    run: Run
    target: Target
    targets: Sequence[Target]
    replay: Replay | None
    seq: int | None = None
    what: str = ""
    changes_only: bool = False

    @cached_property
    def entries(self) -> list[Entry]:
        return entries_of(self.run.id)

    @cached_property
    def state(self) -> RunState:
        return fold(self.run.id, self.entries)

    @property
    def others(self) -> list[Replay]:
        """The last one under each other release."""
        made = Replay.objects.filter(run=self.run, purpose=Purpose.REPLAY).exclude(release=self.target.release)
        return list(made.order_by("release_id", "-id").distinct("release_id").select_related("release"))

    @property
    def result(self) -> dict[str, Any]:
        return (self.replay.result if self.replay is not None else None) or {}

    @property
    def waits(self) -> bool:
        return self.replay is not None and self.replay.ended_at is None

    @property
    def last(self) -> int:
        """The journal's end when it was decided again."""
        as_of = self.replay.as_of_seq if self.replay is not None else None
        return min(as_of or len(self.entries), len(self.entries))

    @property
    def newer(self) -> int:
        """Entries that came since."""
        return len(self.entries) - self.last

    @cached_property
    def points(self) -> list[Point]:
        return points_of(self.result, self.entries[: self.last])

    @property
    def in_effect(self) -> int:
        return sum(point.look == DIVERGES for point in self.points)

    @property
    def in_text(self) -> int:
        return sum(point.look == TEXT for point in self.points) - self.by_model

    @property
    def by_model(self) -> int:
        """Answers of the model, asked again, that are other than the recorded ones."""
        return sum(point.what == MODEL for point in self.points)

    @property
    def first(self) -> Point | None:
        """The first that differs in effect."""
        return next((point for point in self.points if point.look == DIVERGES), None)

    @cached_property
    def at(self) -> int | None:
        """Which of the points is shown: the one of the address, else the first in effect, else the first."""
        here = [point for point in self.points if point.seq == self.seq]
        named = [point for point in here if point.what == self.what]
        wanted = next(iter([*named, *here]), None) or self.first or next(iter(self.points), None)
        return None if wanted is None else self.points.index(wanted)

    @property
    def chosen(self) -> Point | None:
        return None if self.at is None else self.points[self.at]

    @property
    def before(self) -> Point | None:
        return self.points[self.at - 1] if self.at else None

    @property
    def after(self) -> Point | None:
        return self.points[self.at + 1] if self.at is not None and self.at + 1 < len(self.points) else None

    @property
    def chosen_entry(self) -> Entry | None:
        found = self.chosen
        return self.entries[found.seq - 1] if found is not None and 0 < found.seq <= len(self.entries) else None

    @cached_property
    def diff(self) -> TextDiff | None:
        found = self.chosen
        return diff_of(found.found, changes_only=self.changes_only) if found is not None and found.found else None

    @cached_property
    def led_here(self) -> Point | None:
        """Of a move that differs: the other words of the decision that made it."""
        found = self.chosen
        if found is None or found.found is None or found.look != DIVERGES:
            return None
        step = found.found["step"]
        made = next((one.seq for one in self.state.decisions if step in one.steps), None)
        return next((point for point in self.points if point.seq == made and point.look == TEXT), None)

    @property
    def words_diff(self) -> TextDiff | None:
        found = self.led_here
        return diff_of(found.found, changes_only=self.changes_only) if found is not None and found.found else None

    @property
    def cells(self) -> list[Cell]:
        return cells_of(self.result, self.last)

    @property
    def strip_says(self) -> str:
        return strip_says(self.result, self.last)

    @property
    def fork_at(self) -> int | None:
        """The last frontier before what is shown, or of all that is there."""
        found = self.chosen
        upto = found.seq - 1 if found is not None else self.last
        return fork_points(self.run.id, self.entries).before(upto)

    @property
    def pins(self) -> tuple[Pin, Pin]:
        there = Run(release=self.target.release, release_id=self.target.release.id)
        return pin_of(self.run, self.state), pin_of(there, RunState(self.run.id))

    @property
    def model(self) -> str:
        return model_of(self.target.release.content)

    @property
    def recorded_tokens(self) -> float:
        usage = self.state.usage
        return usage.get("tokens", usage.get("input_tokens", 0) + usage.get("output_tokens", 0))

    @property
    def recorded_cost(self) -> float:
        return self.state.usage.get("cost", 0)

    def release_named(self, release_id: str) -> Release:
        return next(one.release for one in self.targets if one.release.id == release_id)

    def address(self, **changed: Any) -> str:
        """The query of this page with something changed."""
        said: dict[str, Any] = {"release": self.target.release.id, "seq": self.seq, "what": self.what or None}
        said["show"] = CHANGES if self.changes_only else None
        return "?" + urlencode({name: value for name, value in (said | changed).items() if value is not None})
