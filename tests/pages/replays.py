"""Replays for the pages to show, as a worker keeps them, without a worker."""

from __future__ import annotations

from typing import Any

from django.db.models.functions import Now

from recovery.models import Purpose, Replay
from runs.models import Release
from tests.pages.journals import TOOLS, Story, release


def newer() -> Release:
    """The release after that of every story."""
    content = {"agent": "refund-desk", "version": "8", "tools": TOOLS}
    return Release.objects.get_or_create(id="c81b" * 16, agent="refund-desk", version="8", content=content)[0]


def call_of(tool: str, **args: Any) -> list[dict[str, Any]]:
    return [{"call": tool, "args": args}]


def divergence(seq: int, recorded: Any, attempted: Any, kind: str = "arguments", says: str = "") -> dict[str, Any]:
    return {
        "seq": seq, "step": None, "kind": kind, "effect": kind != "text", "recorded": recorded, "attempted": attempted,
        "says": says or f"{kind} at {seq}.",
    }  # fmt: skip


def result_of(story: Story, *divergences: dict[str, Any], **more: Any) -> dict[str, Any]:
    effect = [one["seq"] for one in divergences if one["effect"]]
    return {
        "verdict": "diverged" if effect else "same", "agent": "refund-desk", "version": "8", "release": newer().id,
        "code": "cd" * 32, "recorded_release": release().id, "recorded_code": "ab" * 32, "as_of_seq": story.last,
        "compared": 3, "of": 3, "stopped_at": None, "stopped_why": "", "first": effect[0] if effect else None,
        "divergences": list(divergences), "more": 0, "reasons": [], "calls": story.step, "model": None,
    } | more  # fmt: skip


def ordered(story: Story, **fields: Any) -> Replay:
    """One that waits for a worker."""
    given = {"purpose": Purpose.REPLAY, "release": newer(), "actor": "olga"} | fields
    return Replay.objects.create(run=story.run, **given)


def decided(story: Story, *divergences: dict[str, Any], **more: Any) -> Replay:
    """One that has ended."""
    result = result_of(story, *divergences, **more)
    return ordered(story, ended_at=Now(), as_of_seq=story.last, verdict=result["verdict"], result=result)


def diverged() -> Story:
    """A run of three calls that would be decided otherwise under the next release, in text, in effect, and not reached
    behind that."""
    story = Story()
    story.plan(thought="Look it up")
    story.call("lookup", order_id="o-1")
    story.result({"total_cents": 24_000})
    story.plan(thought="Refund to the card")
    story.call(order_id="o-1", amount_cents=24_000)
    story.result({"id": "re-1"})
    story.plan(thought="Tell them")
    story.call("mail", to="a@example.org")
    story.result(None)
    decided(
        story,
        divergence(2, {"thought": "Look it up"}, {"thought": "Look the order up"}, "text"),
        divergence(5, {"thought": "Refund to the card"}, {"thought": "Refund less the voucher"}, "text"),
        divergence(
            6, call_of("refund", order_id="o-1", amount_cents=24_000),
            call_of("refund", order_id="o-1", amount_cents=22_800), says="a call of refund: amount_cents differs.",
        ) | {"step": 2},
        divergence(9, call_of("mail", to="a@example.org"), None, "missing_tool", "there is no tool mail any more."),
        stopped_at=9, stopped_why="the flow makes other moves here",
    )  # fmt: skip
    story.done(result=True)
    return story
