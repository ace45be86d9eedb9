"""Writes letters by the mailroom, a service of one's own that `once` makes keyed: see demo/mailroom."""

from __future__ import annotations

import os
from collections.abc import Generator
from typing import Any
from urllib.parse import quote

import httpx

from runs.sdk import Absent, Call, Found, PermanentError, RunView, ToolContext, TransientError, Undecided, flow, tool


def find_letter(ctx: ToolContext, **_args: Any) -> Found | Absent | Undecided:
    """The mailroom knows a key as soon as its letter is committed, and not before."""
    try:
        answer = httpx.get(f"{mailroom()}/letters/{quote(ctx.key)}", timeout=5)
    except httpx.HTTPError as away:
        return Undecided(str(away) or type(away).__name__)
    if answer.status_code == httpx.codes.OK:
        return Found(answer.json())
    if answer.status_code == httpx.codes.NOT_FOUND:
        return Absent()
    return Undecided(f"the mailroom answered {answer.status_code}")


@tool(
    effect="keyed",
    probe=find_letter,
    timeout=20,
    sample={"address": "ada@example.org", "body": "a letter to try with"},
)
def post_letter(ctx: ToolContext, address: str, body: str) -> dict[str, Any]:
    """Post one letter."""
    letter = {"address": address, "body": body}
    try:
        answer = httpx.post(f"{mailroom()}/letters", json=letter, headers={"Idempotency-Key": ctx.key}, timeout=10)
    except httpx.ConnectError as away:
        raise TransientError(f"the mailroom is away: {away}") from away
    if answer.is_client_error:
        raise PermanentError(str(answer.json()["error"]))
    posted: dict[str, Any] = answer.raise_for_status().json()
    return posted


@flow(name="letters", version="1", tools=[post_letter])
def letters(run: RunView) -> Generator[Any, Any, Any]:
    """The same words to each address, one after the other."""
    posted = []
    for address in run.input["to"]:
        done = yield Call(post_letter, address=address, body=run.input["body"])
        posted.append(done["letter"])
    return {"posted": posted}


def mailroom() -> str:
    return os.environ.get("HOLDFAST_MAILROOM_URL", "http://127.0.0.1:8011").rstrip("/")
