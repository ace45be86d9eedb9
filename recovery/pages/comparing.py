"""A fork beside what it was forked from, or another relative: step by step, and how both ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.utils.http import urlencode
from django.views.decorators.http import require_GET

from journal.encoding import tagged
from recovery.errors import NoRelative
from recovery.forks_compared import COPIED, DIFFERS, EQUAL, ForkCompared, StepPair, forks_compared
from recovery.pages.replay_page import CHANGES
from recovery.pages.replay_points import written
from runs.access import VIEW
from runs.errors import StatelessRun
from runs.models import Run
from runs.pages.asked import whole
from runs.pages.relatives import Relative, relatives_of
from runs.pages.text_diff import TextDiff, text_diff
from runs.queries import entries_of, find_run
from runs.rest.answers import is_stateless
from runs.short_ids import short_id
from runs.signed_in import signed_in
from runs.slots import Slot

LIST = "div#compared"  # as htmx 4 names it in HX-Target
ALIKE = (COPIED, EQUAL)


@dataclass
class ComparePage:
    """`source` is the older of the two, `fork` the younger; `run` is the one whose page it is."""

    run: Run
    other: Run
    relatives: Sequence[Relative]
    step: int | None = None
    changes_only: bool = False

    @property
    def fork(self) -> Run:
        return max(self.run, self.other, key=lambda run: run.id)

    @property
    def source(self) -> Run:
        return min(self.run, self.other, key=lambda run: run.id)

    @property
    def is_fork_of(self) -> bool:
        return self.fork.forked_from_id == self.source.id

    @cached_property
    def compared(self) -> ForkCompared:
        return forks_compared(entries_of(self.fork.id), entries_of(self.source.id))

    @property
    def steps(self) -> Sequence[StepPair]:
        """Those that the address asks for."""
        return [pair for pair in self.compared.steps if not self.changes_only or pair.how not in ALIKE]

    @property
    def counts(self) -> Sequence[tuple[str, int]]:
        """How many are how; one differs, two differ."""
        plural = {DIFFERS: "differ"}
        return [(how if n == 1 else plural.get(how, how), n) for how, n in self.compared.counts.items()]

    @cached_property
    def chosen(self) -> StepPair | None:
        """The step of the address, else the first that is not alike, else the last."""
        steps = self.compared.steps
        named = [pair for pair in steps if pair.step == self.step]
        return next(iter([*named, *(pair for pair in steps if pair.how not in ALIKE), *reversed(steps)]), None)

    @property
    def diff(self) -> TextDiff | None:
        pair = self.chosen
        if pair is None:
            return None
        return beside(told(pair.source), told(pair.fork), changes_only=self.changes_only)

    @property
    def ends(self) -> TextDiff | None:
        """Results side by side, once one of them has ended."""
        fork, source = self.compared.endings
        return beside(ending(source), ending(fork)) if fork or source else None

    @property
    def same_end(self) -> bool:
        fork, source = self.compared.endings
        return bool(fork and source) and ending(fork) == ending(source)

    def address(self, **changed: Any) -> str:
        said: dict[str, Any] = {"with": short_id(self.other.id), "step": self.step}
        said["show"] = CHANGES if self.changes_only else None
        return "?" + urlencode({name: value for name, value in (said | changed).items() if value is not None})


def beside(source: str, fork: str, *, changes_only: bool = False) -> TextDiff:
    """What only one of them has differs from nothing."""
    return text_diff(source or fork, fork or source, changes_only=changes_only and bool(source and fork))


def told(slot: Slot | None) -> str:
    """The move of a step, and what came of it."""
    if slot is None:
        return ""
    lines = [written(tagged(slot.recorded))]
    if slot.edited is not None:
        lines.append(f"sent, as {slot.edited.by} changed it: {written(tagged(slot.args))}")
    lines.append(f"outcome: {slot.outcome or slot.state}")
    if slot.error is not None:
        lines.append(f"error: {written(slot.error)}")
    elif slot.outcome == "succeeded":
        lines.append(f"result: {written(tagged(slot.result))}")
    return "\n".join(lines)


def ending(done: Mapping[str, Any] | None) -> str:
    if done is None:
        return ""
    return next(f"{name}: {written(tagged(done[name]))}" for name in ("result", "error", "cancelled") if name in done)


@require_GET
@signed_in(VIEW)
def compare(request: HttpRequest, ref: str) -> HttpResponseBase:
    run = find_run(ref, request.user)
    if is_stateless(run):
        raise StatelessRun
    family = relatives_of(run)
    named = request.GET.get("with", "")
    other = find_run(named, request.user) if named else nearest(run)
    if other.id == run.id or other.lineage is None or other.lineage != run.lineage:
        raise NoRelative(f"({short_id(other.id)})")
    show = request.GET.get("show") == CHANGES
    page = ComparePage(run, other, family.others, whole(request.GET.get("step")), show)
    template = "_compared.html" if request.headers.get("HX-Target") == LIST else "compare.html"
    context = {"section": "runs", "page": page, "run": run, "short": short_id(run.id)}
    answer = render(request, f"recovery/{template}", context)
    answer.headers["Vary"] = "HX-Request, HX-Target, Cookie"
    return answer


def nearest(run: Run) -> Run:
    """What it was forked from, else its own newest fork. Raises NoRelative."""
    runs = Run.objects.select_related("release", "session")
    found = runs.filter(forks=run).first() or runs.filter(forked_from=run).order_by("-id").first()
    if found is None:
        raise NoRelative(f"({short_id(run.id)} has none)")
    return found
