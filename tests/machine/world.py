"""A ledger in this process, and tools of every class whose effects land in it. Trouble is ordered beforehand."""

from __future__ import annotations

import threading
from collections import Counter, deque
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import psycopg

from runs.sdk import Absent, Found, PermanentError, Policy, Retry, ToolContext, TransientError, Undecided, tool

SOON = Retry(attempts=3, backoff=0.01)
TROUBLES = ("transient", "permanent", "lost before", "lost after", "undecided")
BEGUN = """
SELECT count(*) FROM journal_entry WHERE run_id = %s AND step = %s
   AND (kind = 'ATTEMPT' OR kind = 'TOOL_CALL' AND position('"gate":null'::bytea IN body) > 0)
"""


@dataclass
class World:
    """`acts`: how often something happened under a key. `wrong`: what must never be. `tally`: what the walk has met."""

    dsn: str = ""
    acts: Counter[str] = field(default_factory=Counter)
    sent: dict[str, int] = field(default_factory=dict)  # with which argument something happened under a key
    troubles: deque[str] = field(default_factory=deque)
    wrong: list[str] = field(default_factory=list)
    tally: Counter[str] = field(default_factory=Counter)
    heard: set[str] = field(default_factory=set)  # digests of what models were told
    judged: set[tuple[UUID, int]] = field(default_factory=set)  # requests of which that was looked up
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def reset(self, dsn: str) -> None:
        self.dsn = dsn
        self.acts.clear()
        self.sent.clear()
        self.troubles.clear()
        self.wrong.clear()
        self.heard.clear()
        self.judged.clear()

    def acted(self, key: str) -> int:
        return self.acts[key]

    def call(self, ctx: ToolContext, keyed: bool) -> str:
        """The effect, as ordered: it surely does not act, or may have, or acts and says so."""
        trouble = self._trouble(probing=False)
        self.begun(ctx)
        self.tally[trouble or "acted"] += 1
        if ctx.key != f"{ctx.run_id}:{ctx.step}":
            self.wrong.append(f"the key of step {ctx.step} is {ctx.key}")
        if trouble == "transient":
            raise TransientError("not now", retry_after=0)
        if trouble == "permanent":
            raise PermanentError("never")
        if trouble == "lost before":
            raise ConnectionError("the request was lost")
        with self._lock:
            if not (keyed and self.acts[ctx.key]):
                self.acts[ctx.key] += 1
        if trouble == "lost after":
            raise ConnectionError("the answer was lost")
        return "acted"

    def find(self, key: str) -> Found | Absent | Undecided:
        if self._trouble(probing=True) == "undecided":
            return Undecided("ask again")
        return Found("acted") if self.acts[key] else Absent()

    def _trouble(self, probing: bool) -> str | None:
        with self._lock:
            if self.troubles and (self.troubles[0] == "undecided") == probing:
                return self.troubles.popleft()
        return None

    def begun(self, ctx: ToolContext) -> None:
        """An attempt of this step is committed: looked up beside the product, before the effect."""
        with psycopg.connect(self.dsn, autocommit=True) as conn:
            row = conn.execute(BEGUN, (ctx.run_id, ctx.step)).fetchone()
        if row is None or row[0] < ctx.attempt:
            self.wrong.append(f"{ctx.key} acts without its attempt {ctx.attempt}")


WORLD = World()


def find_by_key(ctx: ToolContext, **_args: Any) -> Found | Absent | Undecided:
    return WORLD.find(ctx.key)


@tool(effect="read", timeout=20, retry=SOON)
def look(ctx: ToolContext) -> str:
    return WORLD.call(ctx, keyed=True)


@tool(effect="keyed", timeout=20, retry=SOON)
def charge(ctx: ToolContext) -> str:
    return WORLD.call(ctx, keyed=True)


@tool(effect="keyed", probe=find_by_key, timeout=20, retry=SOON)
def refund(ctx: ToolContext) -> str:
    return WORLD.call(ctx, keyed=True)


@tool(effect="probed", probe=find_by_key, timeout=20, max_in_flight=0.01, retry=SOON)
def transfer(ctx: ToolContext) -> str:
    return WORLD.call(ctx, keyed=False)


@tool(effect="unkeyed", timeout=20, max_in_flight=0.01, retry=SOON)
def letter(ctx: ToolContext) -> str:
    return WORLD.call(ctx, keyed=False)


@tool(effect="unkeyed", approval=True, timeout=20, max_in_flight=0.01, retry=SOON)
def gated(ctx: ToolContext) -> str:
    return WORLD.call(ctx, keyed=False)


@tool(effect="keyed", probe=find_by_key, approval=Policy(quorum=2, four_eyes=True), timeout=20, retry=SOON)
def paired(ctx: ToolContext, n: int = 0) -> str:
    """Two people agree to it, and may change `n` first."""
    WORLD.sent[ctx.key] = n
    return WORLD.call(ctx, keyed=True)


@tool(effect="keyed", approval=Policy(four_eyes=False, ttl=0.1, on_expiry="deny"), timeout=20, retry=SOON)
def brief(ctx: ToolContext, n: int = 0) -> str:
    """Soon too late."""
    WORLD.sent[ctx.key] = n
    return WORLD.call(ctx, keyed=True)


@tool(effect="unkeyed", approval=Policy(ttl=0.8), timeout=20, max_in_flight=0.01, retry=SOON)
def lapsing(ctx: ToolContext, n: int = 0) -> str:
    """Soon too late, until somebody asks for it anew."""
    WORLD.sent[ctx.key] = n
    return WORLD.call(ctx, keyed=False)


@tool(effect="keyed", probe=find_by_key, timeout=20, retry=SOON, limit=1)
def limited(ctx: ToolContext) -> str:
    return WORLD.call(ctx, keyed=True)


CHANGEABLE = {t.name for t in (paired, brief, lapsing)}
TOOLS = {t.name: t for t in (look, charge, refund, transfer, letter, gated, paired, brief, lapsing, limited)}
