"""A deploy under load, by the commands that an admin has: 7 -> 8 as a canary, promoted, 7 drained, retired; and back.

Runs arrive all the while. At the end nothing is lost, no key was used by two calls, and every run ended under the
version that it began under.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import psycopg

from bench.kill import until
from bench.tools import lines
from bench.world import SideFailed, World

AGENT = "deployed"
IN_FLIGHT = """
SELECT count(*) FROM runs_run WHERE agent = 'deployed' AND status = 'running'
"""
OPEN = """
SELECT count(*) FROM runs_run r JOIN runs_release v ON v.id = r.release_id
 WHERE v.agent = 'deployed' AND v.version = %s AND r.ended_at IS NULL
"""
BEGUN = """
SELECT v.version, count(*) FROM runs_run r JOIN runs_release v ON v.id = r.release_id
 WHERE v.agent = 'deployed' AND r.created_at > %s GROUP BY v.version
"""
NOW = "SELECT clock_timestamp()"
SERVING = "SELECT count(*) FROM runs_workersession WHERE name = %s AND ended_at IS NULL"
ENDINGS = """
SELECT r.id::text, r.status, v.version, convert_from(e.body, 'UTF8') FROM runs_run r
  JOIN runs_release v ON v.id = r.release_id
  LEFT JOIN journal_entry e ON e.run_id = r.id AND e.kind = 'DONE'
 WHERE r.agent = 'deployed'
"""
EMPTY, HANDED_OVER = 0, 3  # exit codes of a drain that was waited for
GRACE = 30.0


@dataclass(slots=True)
class Hand:
    """A worker process of one version."""

    name: str
    version: str
    side: subprocess.Popen[str]


@dataclass
class Deploy:
    """`phases`: seconds by name."""

    world: World
    conn: psycopg.Connection[Any]
    env: dict[str, str]
    concurrency: int
    phases: dict[str, float] = field(default_factory=dict)
    numbers: Iterator[int] = field(default_factory=count)

    def ask(self, query: str, *values: Any) -> Any:
        row = self.conn.execute(query, values).fetchone()
        return row[0] if row else None

    @contextmanager
    def timed(self, phase: str) -> Iterator[None]:
        began = time.monotonic()
        yield
        self.phases[phase] = time.monotonic() - began

    def manage(self, *words: str, expect: int = 0) -> str:
        """A command as an admin types it; what it says."""
        side = self.world.start("manage.py", *words, env=self.env)
        out, _ = side.communicate(timeout=180)
        if side.returncode != expect:
            said = (self.world.home / "side.log").read_text()[-2000:]
            raise SideFailed(f"manage.py {' '.join(words)}: exit {side.returncode}, not {expect}\n{out}\n{said}")
        return out

    def hire(self, version: str) -> Hand:
        """A worker that serves this version, once it does."""
        name = f"v{version}-{next(self.numbers)}"
        words = ["manage.py", "worker", "--name", name, "--concurrency", str(self.concurrency)]
        env = self.env | {"HOLDFAST_AGENTS": "bench.deployed", "BENCH_VERSION": version}
        side = self.world.start(*words, lines=self.world.home / "deploy.lines", env=env)
        until(f"{name} serves", lambda: self.ask(SERVING, name))
        return Hand(name, version, side)

    def dismiss(self, hand: Hand) -> None:
        hand.side.terminate()
        hand.side.communicate(timeout=GRACE + 10)
        if hand.side.returncode != 0:
            raise SideFailed(f"{hand.name} left with {hand.side.returncode}")

    def begun_since(self, moment: Any) -> dict[str, int]:
        return dict(self.conn.execute(BEGUN, (moment,)).fetchall())


def deploy(world: World, rate: float = 5.0, steps: int = 40, flying: int = 50) -> dict[str, float]:
    """`flying`: runs in flight before anything is deployed. Seconds of each phase, and what was counted."""
    path = world.lines("deploy")
    env = {"HOLDFAST_LEASE_SECONDS": "10", "HOLDFAST_SWEEP_SECONDS": "1", "HOLDFAST_GRACE_SECONDS": str(GRACE)}
    with psycopg.connect(world.dsn(), autocommit=True) as conn:
        on = Deploy(world, conn, env, concurrency=flying * 2)
        sides = [world.start("manage.py", "sweep", env=env)]
        hands = [on.hire("7"), on.hire("7")]
        words = ["-m", "bench.arrivals", "--rate", str(rate), "--steps", str(steps)]
        arrivals = world.start(*words, env=env, stdin=subprocess.PIPE)
        try:
            until(f"{flying} runs are in flight", lambda: on.ask(IN_FLIGHT) >= flying * 0.9)
            hands = there(on, hands, rate)
            hands = back(on, hands, rate)
            said, _ = arrivals.communicate("", timeout=60)
            started: list[str] = json.loads(said.splitlines()[-1])["runs"]
            with on.timed("the last runs end"):
                until("all runs have ended", lambda: not any(on.ask(OPEN, version) for version in ("7", "8")))
        finally:
            left = [arrivals, *(hand.side for hand in hands), *sides]
            for side in left:
                side.terminate()
            for side in left:
                if side.stdout is not None and not side.stdout.closed:
                    side.communicate(timeout=GRACE + 10)
        endings = conn.execute(ENDINGS).fetchall()
    return on.phases | judged(started, endings, Counter((line.run, line.step) for line in lines(path)), steps)


def there(on: Deploy, old: list[Hand], rate: float) -> list[Hand]:
    """7 -> 8; the release is drained while its runs are under way, and let go to end by themselves."""
    with on.timed("8: workers serve"):
        new = [on.hire("8"), on.hire("8")]
    began = on.ask(NOW)
    on.manage("release", "canary", f"{AGENT}@8", "--share", "20", "--reason", "deploy of 8")
    until("the canary has runs", lambda: sum(on.begun_since(began).values()) >= rate * 6)
    shares = on.begun_since(began)
    on.phases["canary's share of 20"] = 100 * shares.get("8", 0) / sum(shares.values())
    promote(on, "8", "7")
    with on.timed("7: drained to checkpoints"):
        scope = f"release:{AGENT}@7"
        on.manage("drain", "--scope", scope, "--timeout", "60", "--reason", "deploy of 8", "--wait", expect=EMPTY)
    on.manage("undrain", "--scope", scope, "--reason", "its runs may end")
    retire(on, "7", old)
    return new


def back(on: Deploy, old: list[Hand], rate: float) -> list[Hand]:
    """8 -> 7; each worker of 8 is drained, and hands its runs over to the one that is left."""
    with on.timed("7: workers serve again"):
        new = [on.hire("7"), on.hire("7")]
    began = on.ask(NOW)
    on.manage("release", "canary", f"{AGENT}@7", "--share", "50", "--reason", "8 refunds too much")
    until("the canary has runs", lambda: sum(on.begun_since(began).values()) >= rate * 3)
    promote(on, "7", "8")
    first, last = old
    with on.timed("8: a worker drained"):
        scope = f"worker:{first.name}"
        on.manage("drain", "--scope", scope, "--timeout", "60", "--reason", "back to 7", "--wait", expect=EMPTY)
    on.dismiss(first)
    retire(on, "8", [last])
    return new


def promote(on: Deploy, version: str, before: str) -> None:
    with on.timed(f"{version}: promoted"):
        on.manage("release", "promote", f"{AGENT}@{version}", "--reason", "the canary does well")
    promoted = on.ask(NOW)
    until(f"runs of {version} begin", lambda: on.begun_since(promoted).get(version, 0) >= 5)
    if late := on.begun_since(promoted).get(before):
        raise SideFailed(f"{late} runs began under {before} after {version} was promoted")


def retire(on: Deploy, version: str, hands: list[Hand]) -> None:
    """Once nothing needs it: its workers end last."""
    with on.timed(f"{version}: its last run ended"):
        until(f"no run of {version} is open", lambda: on.ask(OPEN, version) == 0)
    on.manage("release", "needs", f"{AGENT}@{version}")
    on.manage("release", "retire", f"{AGENT}@{version}", "--reason", "nothing needs it")
    with on.timed(f"{version}: workers left"):
        for hand in hands:
            on.dismiss(hand)


def judged(
    started: list[str], endings: list[tuple[str, str, str, str]], calls: Counter[tuple[str, int]], steps: int
) -> dict[str, float]:
    """Counts of what must not be: all but `runs` are 0 after a good deploy."""
    known = {run for run, *_ in endings}
    mixed = sum(json.loads(done or "{}").get("result") != [version] for _, _, version, done in endings)
    return {
        "runs": len(started),
        "lost": len(set(started) - known),
        "not done": sum(status != "done" for _, status, _, _ in endings),
        "ended under another version": mixed,
        "calls repeated": sum(times - 1 for times in calls.values()),
        "calls missing": sum((run, n) not in calls for run in started for n in range(1, steps + 1)),
    }
