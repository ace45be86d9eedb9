"""W3: SIGKILL with many runs in flight. How long until all of them go on, and is any settled call repeated?"""

from __future__ import annotations

import subprocess
import time
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any
from uuid import uuid4

import psycopg
from redis import Redis

from bench.tools import Line, lines
from bench.world import SideFailed, World
from config.embedded.valkey import socket_path
from config.session_watch import SessionWatch

UNFINISHED = "SELECT count(*) FROM runs_run WHERE status <> 'done'"
HELD = "SELECT id FROM runs_run WHERE session_id = %s AND status = 'running'"
ENDED = "SELECT max(ended_at) FROM runs_run WHERE id = ANY(%s)"
OBSERVED = "SELECT run_id::text, settles, recorded_at FROM journal_entry WHERE run_id = ANY(%s) AND settles IS NOT NULL"
PATIENCE = 120.0


def until(what: str, is_so: Callable[[], Any]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not is_so():
        if time.monotonic() > deadline:
            raise SideFailed(f"not in {PATIENCE:.0f} s: {what}")
        time.sleep(0.01)


def consumers(world: World) -> set[str]:
    """The broker's connections that wait for messages: a worker that has one is up."""
    with Redis(unix_socket_path=str(socket_path(world.home / "broker"))) as broker:
        return {client["id"] for client in broker.client_list() if client["cmd"] == "brpop"}


def kill_worker(world: World, runs: int, steps: int, seen: bool, lease: float, sweep: float) -> dict[str, float]:
    """`seen`: a supervisor ends the dead worker's session at once; else its lease has to run out."""
    path = world.lines("kill")
    env = {"HOLDFAST_LEASE_SECONDS": str(lease), "HOLDFAST_SWEEP_SECONDS": str(sweep)}
    session = uuid4()
    watch = SessionWatch(world.dsn(), lease, lambda _: None)
    with psycopg.connect(world.dsn(), autocommit=True) as conn:

        def hire(name: str, more: Mapping[str, str]) -> subprocess.Popen[str]:
            others = consumers(world)
            words = ["manage.py", "worker", "--name", name, "--concurrency", str(runs)]
            side = world.start(*words, lines=path, env={**env, **more})
            until(f"{name} is up", lambda: consumers(world) - others)
            return side

        sides = [world.start("manage.py", "sweep", env=env)]
        try:
            watch.start()
            doomed = hire("doomed", {"HOLDFAST_SESSION": str(session)})
            watch.begin(session)
            made = world.measure("-m", "bench.starts", "--runs", str(runs), "--steps", str(steps))["runs"]
            until("all are in flight", lambda: len({line.run for line in lines(path)}) == runs)
            sides.append(hire("other", {}))
            doomed.kill()
            killed, killed_at = time.monotonic(), time.time()
            doomed.wait()
            held = {str(run) for (run,) in conn.execute(HELD, (session,)).fetchall()}
            if len(held) < runs * 0.9:
                raise SideFailed(f"{len(held)} runs were left in flight at the kill: the machine is too slow for it")
            if seen:
                watch.end(session)
            until("all runs are done", lambda: conn.execute(UNFINISHED).fetchall() == [(0,)])
            ((ended,),) = conn.execute(ENDED, (made,)).fetchall()
            observed = {(run, step): at for run, step, at in conn.execute(OBSERVED, (made,)).fetchall()}
        finally:
            watch.close(1)
            for side in sides:
                side.terminate()
            for side in sides:
                side.wait(40)
    found = [line for line in lines(path) if line.run in held]
    return {"done": ended.timestamp() - killed_at} | told(found, killed, killed_at - killed, observed)


def told(
    found: list[Line], killed: float, offset: float, observed: dict[tuple[str, int], datetime]
) -> dict[str, float]:
    """Seconds from the kill to the runs' first calls after it, and the calls that were made more than once."""
    going: dict[str, float] = {}
    repeated = settled = 0
    count: Counter[tuple[str, int]] = Counter()
    for line in found:
        if line.at > killed:
            going.setdefault(line.run, line.at - killed)
        count[line.run, line.step] += 1
        if count[line.run, line.step] > 1:
            repeated += 1
            at = observed.get((line.run, line.step))
            settled += at is not None and at.timestamp() < line.at + offset
    times = sorted(going.values())
    return {
        "first": times[0],
        "half": times[len(times) // 2],
        "all": times[-1],
        "runs": len(times),
        "calls left": sum(line.at > killed for line in found),
        "repeated": repeated,
        "settled_repeated": settled,
    }


def kill_dbos(world: World, runs: int, steps: int) -> dict[str, float]:
    """The process is started again at once, under its own executor id: what DBOS recovers by itself."""
    path = world.lines("kill-dbos")
    words, dbos = ["-m", "bench.long_dbos"], {"BENCH_DBOS": world.dbos_url}
    fly = [*words, "fly", "--runs", str(runs), "--steps", str(steps)]
    doomed = world.start(*fly, lines=path, env=dbos)
    until("all are in flight", lambda: len({line.run for line in lines(path)}) == runs)
    doomed.kill()
    killed = time.monotonic()
    doomed.wait()
    before = len(lines(path))
    spoke = world.measure(*words, "recover", lines=path, env=dbos)
    found = lines(path)
    assert len(found) > before
    return {"done": spoke["ended"] - killed} | told(found, killed, 0.0, {}) | {"boot": spoke["began"] - killed}
