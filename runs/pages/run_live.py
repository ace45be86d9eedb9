"""The stream of one run's page: what is new is appended, what changed is drawn over, nothing else is sent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.template.loader import render_to_string
from django.utils import timezone
from django.views.decorators.http import require_GET

from runs.models import Run
from runs.pages.asked import Asked, whole
from runs.pages.blocks import Block, message
from runs.pages.chat_live import ChatPicture
from runs.pages.live import live_answer
from runs.pages.run_page import WINDOW, Proof, Reading, RunPage
from runs.pages.run_views import page_context
from runs.pages.timeline import ALONE, Group, Row

PARTIALS = {  # of a run's page, by target
    "#run-head": "_head",
    "#questions": "_questions",
    "#run-facts": "_facts",
    "#outcome": "_outcome",
    "#tree": "_tree",
    "#relatives": "_relatives",
    "#plan": "_plan",
    "#ruler-scale": "_ruler_scale",
    "#remarks": "_remarks",
}
MOST_CHANGES = 60  # blocks; drawing all of it anew is less then
LONGEST = 2 * WINDOW  # rows; then the window is drawn anew from its newest entries
VERIFIES = timedelta(seconds=5)  # how often a stream follows the chain


@require_GET
async def live_run(request: HttpRequest, run_id: UUID) -> HttpResponseBase:
    seen = whole(request.headers.get("Last-Event-ID")) or whole(request.GET.get("upto")) or 0
    return await live_answer(request, lambda: RunPicture(request, run_id, seen), run_id)


@dataclass(frozen=True, slots=True)
class Drawn:
    """The rows that the browser has, by the id of their step, each with what its looks were made from."""

    groups: Mapping[str, Mapping[int, tuple[Any, ...]]]
    heads: Mapping[str, tuple[Any, ...]]
    ticks: tuple[Any, ...]
    frame: tuple[Any, ...]  # what shows in every row


class RunPicture:
    """What one browser has of a run's page. Old windows of a long journal stand still; their head moves.

    `seen`: the last seq that the browser has.
    """

    def __init__(self, request: HttpRequest, run_id: UUID, seen: int) -> None:
        self.request, self.seen = request, seen
        self.asked = Asked.of(request.GET)
        self.follows = self.asked.after is None and not self.asked.all
        self.reading = Reading(run_id)
        self.since: int | None = None
        self.proof: Proof | None = None
        self.proved_at = timezone.now()
        self.told: tuple[Any, ...] = ()
        self.sent: dict[str, str] = {}
        self.drawn: Drawn | None = None
        self.chat = ChatPicture()

    def draw(self) -> str:
        run = Run.objects.select_related("release", "session").get(pk=self.reading.state.run_id)
        self.reading.refresh()
        last, before = self.reading.state.seq, self.since
        if self.since is None or last - self.since >= LONGEST:
            self.since = max(last - WINDOW, 0) + 1
        page = self.reading.page(run, self.asked, since=self.since, proof=self.kept_proof())
        self.proof = page.proof
        lease, around = page.lease, (page.family, page.line.around, page.relatives)
        held = (lease.live, lease.silent, lease.draining, page.proof.mark.seq)
        comes = page.arriving and page.arriving.at
        tells = (page.last_seq, comes, run.status, run.since, run.reason, run.epoch, held, around)
        if tells == self.told:
            return ""
        # The first picture too, where rows show other runs: one may have changed since the page was made.
        anew = page.last_seq != self.seen if not self.told else before != self.since
        anew = anew or (not self.told and page.line.around != ALONE)
        self.told, self.seen = tells, page.last_seq
        context = page_context(page)
        blocks = [*self.partials(context)]
        if not self.follows or page.stateless:
            return message(blocks, page.last_seq)
        if page.chat is not None:
            blocks += self.chat.blocks(page, anew, lambda name, **more: self.render(name, {**context, **more}))
        else:
            blocks += self.timeline(page, context, anew)
        return message(blocks, page.last_seq)

    def kept_proof(self) -> Proof | None:
        """What was verified a moment ago, so that a busy run's journal is not followed at each entry."""
        now = timezone.now()
        if self.proof is not None and now - self.proved_at < VERIFIES:
            return self.proof
        self.proved_at = now
        return None

    def partials(self, context: Mapping[str, Any]) -> Iterable[Block]:
        """Those that look otherwise than when they were sent last."""
        page: RunPage = context["page"]
        for target, name in PARTIALS.items():
            if page.stateless and name in ("_ruler_scale", "_plan", "_remarks"):
                continue
            html = self.render(name, context)
            if self.sent.get(target) != html:
                self.sent[target] = html
                yield Block(target, "outerMorph", html)

    def timeline(self, page: RunPage, context: Mapping[str, Any], anew: bool) -> Sequence[Block]:
        """New rows at the end of their steps and new steps at the end; rows that changed in place; else all anew."""
        now = drawn(page)
        before, self.drawn = self.drawn, now
        if before is None and not anew:
            return []
        steps = None if anew or before is None else tail_of(before, now)
        if steps is not None and before is not None:
            blocks = [*self.changes(before, now, page, context, steps)]
            if len(blocks) <= MOST_CHANGES:
                return blocks
        return [Block("#timeline", "outerMorph", self.render("_timeline", context))]

    def changes(
        self, before: Drawn, now: Drawn, page: RunPage, context: Mapping[str, Any], new: Sequence[str]
    ) -> Iterable[Block]:
        if before.ticks != now.ticks:
            yield Block("#wf-axis", "outerMorph", self.render("_axis", context))
        gone = [step for step in before.groups if step not in now.groups]
        yield from (Block(f"#{step}", "delete", "") for step in gone)
        for group in page.line.groups:
            if group.id in new:
                html = self.render("_step", {**context, "group": group})
                yield Block("#wf-steps", "append", html)
                continue
            if before.heads[group.id] != now.heads[group.id]:
                yield Block(f"#{group.id}", "outerMorph", self.render("_step", {**context, "group": group}))
                continue
            yield from self.rows(group, before.groups[group.id], now.groups[group.id], context)

    def rows(
        self,
        group: Group,
        before: Mapping[int, tuple[Any, ...]],
        now: Mapping[int, tuple[Any, ...]],
        context: Mapping[str, Any],
    ) -> Iterable[Block]:
        for row in group.rows:
            seq = row.entry.seq
            if seq not in before:
                yield Block(f"#rows-{group.id}", "append", self.render("_row", {**context, "row": row, "group": group}))
            elif before[seq] != now[seq]:
                yield Block(f"#line-{seq}", "outerMorph", self.render("_row", {**context, "row": row, "group": group}))

    def render(self, name: str, context: Mapping[str, Any]) -> str:
        return render_to_string(f"runs/{name}.html", dict(context), self.request)


def drawn(page: RunPage) -> Drawn:
    line = page.line
    beside = (page.gate, page.ended)
    groups = {g.id: {row.entry.seq: looks_of(row, beside) for row in g.rows} for g in line.groups}
    heads = {g.id: (g.number, g.title, g.beside, g.pending) for g in line.groups}
    frame = (tuple(line.axis.folds), page.earlier, page.later)
    return Drawn(groups, heads, tuple(line.axis.ticks), frame)


def looks_of(row: Row, beside: tuple[Any, ...]) -> tuple[Any, ...]:
    """All that its partials draw."""
    slot, gap = row.slot, row.gap
    told = None if slot is None else (slot.outcome, slot.obs_seq, slot.state, len(slot.attempts))
    signal = None if row.signal is None else row.signal.step
    away = None if gap is None else (gap.epoch, gap.began, gap.lost, gap.taker, gap.bar)
    until = None if row.until is None else row.seconds
    return (row.text, row.look, row.flag, row.outcome, row.place, row.bar, row.child, until, told, signal, away, beside)


def tail_of(before: Drawn, now: Drawn) -> list[str] | None:
    """The steps that are new at the end; None where what changed is more than that can tell."""
    old, new = list(before.groups), list(now.groups)
    kept = [step for step in old if step in now.groups]
    if before.frame != now.frame or new[: len(kept)] != kept or len(old) - len(kept) > 1:
        return None
    if any(list(now.groups[step])[: len(before.groups[step])] != list(before.groups[step]) for step in kept):
        return None
    return new[len(kept) :]
