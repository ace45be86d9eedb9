"""Runs whose rows tell what waits, as a worker leaves them when it lets a run go."""

from __future__ import annotations

import json
from typing import Any

from journal.entries import Kind
from runs.engine.projections import open_intents
from runs.models import Release, Run, Status
from runs.queries import state_of
from tests.pages.journals import DIGEST, Story

RETURNS = {
    "type": "object",
    "properties": {"id": {"type": "string"}, "amount_cents": {"type": "integer"}},
    "required": ["id", "amount_cents"],
}
PARAMETERS = {
    "type": "object",
    "properties": {"order_id": {"type": "string"}, "amount_cents": {"type": "integer"}},
    "required": ["order_id", "amount_cents"],
}
TWO = {"group": "approver", "quorum": 2, "four_eyes": True, "ttl": None, "on_expiry": "park", "remind_every": None}


def typed() -> None:
    """The tools of the stories' release say what they take and return."""
    release = Release.objects.get(id="9f2c" * 16)
    more = {"parameters": PARAMETERS, "returns": RETURNS, "max_in_flight": 60.0, "key_ttl": 86_400.0}
    release.content = release.content | {"tools": [tool | more for tool in release.content["tools"]]}
    release.save()


def listed(story: Story, asked_by: str = "olga") -> Story:
    """With the row as the worker that let it go would have written it."""
    told = json.loads(open_intents(state_of(story.run.id), asked_by=asked_by))
    Run.objects.filter(pk=story.run.pk).update(intents=told)
    story.run.refresh_from_db()
    return story


def item(story: Story, seq: int) -> str:
    return story.url.replace("/runs/", "/inbox/") + f"/{seq}"


def asked(policy: dict[str, Any] | None = None, tool: str = "refund", **more: Any) -> tuple[Story, int]:
    """A call that waits for approval under this policy."""
    story = Story()
    story.plan(thought="Refund the order")
    story.step += 1
    args = {"order_id": "o-1", "amount_cents": 24_000}
    body = {"tool": tool, "args": args, "key": f"{story.run.id}:{story.step}", "effect": "keyed", "digest": DIGEST}
    seq = story.write(Kind.TOOL_CALL, body | {"gate": "approval", "summary": "Refund 240.00 for o-1"}, step=story.step)
    request: dict[str, Any] = {"verdict": "requested", "digest": DIGEST} | more
    if policy is not None:
        request["policy"] = policy
    story.write(Kind.APPROVAL, request, step=story.step)
    return listed(story.now_is(Status.AWAITING_APPROVAL, f"{tool} (step 1) waits for approval")), seq


def doubtful(tool: str = "refund", effect: str = "keyed") -> tuple[Story, int]:
    """A call that nobody knows of."""
    story = Story()
    story.plan(thought="Refund the order")
    story.step += 1
    args = {"order_id": "o-1", "amount_cents": 24_000}
    body = {"tool": tool, "args": args, "key": f"{story.run.id}:{story.step}", "effect": effect, "digest": DIGEST}
    seq = story.write(Kind.TOOL_CALL, body | {"gate": None, "summary": "Refund 240.00 for o-1"}, step=story.step)
    story.result(outcome="unknown", error="the connection was cut")
    why = f"{tool} (step 1) may have happened: the key may be forgotten by now"
    return listed(story.now_is(Status.NEEDS_RECONCILIATION, why)), seq
