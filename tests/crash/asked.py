"""What has to be true of a run whose model was asked over HTTP: the provider's record against the journal."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from demo.providers.seen import Seen
from journal.entries import Entry, Kind
from runs.loops.exact import exact_of
from runs.models import Run
from runs.queries import entries_of, state_of
from runs.registry import agents

CACHE_KEY = "prompt_cache_key"


def rounds_of(entries: Sequence[Entry]) -> list[tuple[list[Entry], Entry | None]]:
    """What was asked for each answer, and the PLAN that it is; the last may have none yet."""
    rounds: list[tuple[list[Entry], Entry | None]] = []
    attempts: list[Entry] = []
    for entry in entries:
        if entry.kind == Kind.ATTEMPT and entry.step is None:
            attempts.append(entry)
        elif entry.kind == Kind.PLAN and entry.actor == "model":
            rounds.append((attempts, entry))
            attempts = []
    return [*rounds, (attempts, None)] if attempts else rounds


def assert_asked_once(run_id: UUID, seen: Sequence[Seen]) -> None:
    """`seen`: what this run asked, in order. No request without its ATTEMPT, committed before; none for an answer that
    was committed; each that was lost is told of by the next."""
    entries = entries_of(run_id)
    about = f"{told(entries)}\n{[(s.number, s.turn, s.digest[:8], s.status, s.fault) for s in seen]}"
    failed = errors_by_attempt(entries)
    left = list(seen)
    for attempts, plan in rounds_of(entries):
        answered = plan.body["asked"] if plan is not None else None
        assert plan is None or answered == attempts[-1].seq, about
        assert_losses_told(attempts, failed, about)
        digests = {attempt.body["digest"] for attempt in attempts}
        mine = [one for one in left if one.digest in digests]
        left = [one for one in left if one.digest not in digests]
        assert len(mine) <= len(attempts), f"asked more often than said: {about}"
        for one, attempt in zip(reversed(mine), reversed(attempts), strict=False):
            assert len(mine) < len(attempts) or one.digest == attempt.body["digest"], about
        for one in mine:
            assert hashlib.sha256(one.body.encode()).hexdigest() == one.digest, about
            first = next(attempt for attempt in attempts if attempt.body["digest"] == one.digest)
            assert first.recorded_at <= datetime.fromisoformat(one.at), f"asked before it was said: {about}"
            assert len(one.body.encode()) == first.body["size"], about
            if plan is not None:
                assert datetime.fromisoformat(one.at) < plan.recorded_at, f"asked again: {about}"
        if plan is not None:
            assert any(one.digest == attempts[-1].body["digest"] for one in mine), about
    assert not left, f"asked without a word in the journal: {about}"
    tokens = {json.loads(one.body).get(CACHE_KEY) for one in seen} - {None}
    assert tokens <= {state_of(run_id).affinity}, f"the provider's cache is missed: {about}"


def assert_recomputed(run: Run) -> None:
    """The journal alone, up to each request, leads to its very bytes."""
    content = agents()[run.release_id].content
    entries = entries_of(run.id)
    for attempts, _ in rounds_of(entries):
        for attempt in attempts:
            assert exact_of(content, entries, attempt.seq).digest == attempt.body["digest"], told(entries)


def errors_by_attempt(entries: Sequence[Entry]) -> dict[int, Entry]:
    """The ERROR of each ATTEMPT of a model that failed, by the attempt's seq."""
    found: dict[int, Entry] = {}
    last: Entry | None = None
    for entry in entries:
        if entry.kind == Kind.ATTEMPT and entry.step is None:
            last = entry
        elif entry.kind == Kind.ERROR and entry.step is None and last is not None:
            found[last.seq] = entry
    return found


def assert_losses_told(attempts: Sequence[Entry], failed: dict[int, Entry], about: str) -> None:
    before: Entry | None = None
    for attempt in attempts:
        lost = before is not None and before.seq not in failed
        if lost:
            assert before is not None
            said = attempt.body["lost"]
            assert said["seq"] == before.seq and said["input_tokens"] > 0 and said["output_tokens"] > 0, about
            assert "cost" in said and attempt.epoch > before.epoch, about
        else:
            assert "lost" not in attempt.body, about
        before = attempt


def bodies(seen: Sequence[Seen], *own: str) -> dict[tuple[str, int], list[str]]:
    """By model and number of the answer: the bodies that asked for it, each once, without what is the run's alone: the
    token for the provider's cache, and the words `own`."""
    found: dict[tuple[str, int], list[str]] = {}
    for one in seen:
        assert one.turn is not None
        token = json.loads(one.body).get(CACHE_KEY)
        body = one.body
        for words in own if token is None else (token, *own):
            assert words in body
            body = body.replace(json.dumps(words)[1:-1], "…")
        known = found.setdefault((one.model, one.turn), [])
        if body not in known:
            known.append(body)
    return found


def told(entries: Sequence[Entry]) -> str:
    return "\n".join(str((e.seq, e.epoch, e.kind, e.step, e.settles, short(e.body))) for e in entries)


def short(body: dict[str, Any]) -> str:
    text = json.dumps(body, default=str)
    return text if len(text) < 400 else f"{text[:400]}…"
