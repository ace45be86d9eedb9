"""Each benchmark as a function of the world: one repetition, and what it found as named numbers."""

from __future__ import annotations

from itertools import pairwise
from statistics import median, quantiles
from typing import Any

from bench.rates import inserts_a_second
from bench.tools import Line, lines
from bench.world import SideFailed, World

LONG = 1000


def percentile(values: list[float], percent: int) -> float:
    return quantiles(values, n=100, method="inclusive")[percent - 1]


def latencies(found: list[Line]) -> list[float]:
    """Milliseconds between two tool starts of a run."""
    runs: dict[str, list[float]] = {}
    for line in found:
        runs.setdefault(line.run, []).append(line.at)
    return [1e3 * (after - before) for times in runs.values() for before, after in pairwise(sorted(times))]


def steps(world: World, flying: int, runs: int, length: int = 10) -> dict[str, float]:
    """W1. "started": without the starts of the runs; CPU is of steps alone, COMMITs and bytes include the starts."""
    path = world.lines("steps")
    words = ["-m", "bench.steps", "--flying", str(flying), "--runs", str(runs), "--length", str(length)]
    said = world.measure(*words, lines=path)
    count, starts, drives = said["steps"], said["starts"], said["drives"]
    times = latencies(lines(path)[-count:])
    return {
        "steps/s": count / (starts["seconds"] + drives["seconds"]),
        "steps/s, started": count / drives["seconds"],
        "p50 ms": median(times),
        "p95 ms": percentile(times, 95),
        "COMMITs": (starts["commits"] + drives["commits"]) / count,
        "COMMITs, started": drives["commits"] / count,
        "COMMITs, steps only": (drives["commits"] - runs) / count,
        "WAL B": (starts["wal"] + drives["wal"] - said["bodies"]) / count,
        "table B": (starts["table"] + drives["table"] - said["bodies"]) / count,
        "bodies B": said["bodies"] / count,
        "CPU ms worker": 1e3 * drives["cpu_worker"] / count,
        "CPU ms server": 1e3 * drives["cpu_server"] / count,
        "CPU ms": 1e3 * (drives["cpu_worker"] + drives["cpu_server"]) / count,
        "CPU ms a start": 1e3 * (starts["cpu_worker"] + starts["cpu_server"]) / runs,
    }


def steps_dbos(world: World, flying: int, runs: int) -> dict[str, float]:
    path = world.lines("steps-dbos")
    words = ["-m", "bench.steps_dbos", "--flying", str(flying), "--runs", str(runs)]
    said = world.measure(*words, lines=path, env={"BENCH_DBOS": world.dbos_url})
    count, drives = said["steps"], said["drives"]
    times = latencies(lines(path)[-count:])
    return {
        "steps/s": count / drives["seconds"],
        "p50 ms": median(times),
        "p95 ms": percentile(times, 95),
        "COMMITs": drives["commits"] / count,
        "WAL B": drives["wal"] / count,
        "table B": drives["table"] / count,
        "CPU ms worker": 1e3 * drives["cpu_worker"] / count,
        "CPU ms server": 1e3 * drives["cpu_server"] / count,
        "CPU ms": 1e3 * (drives["cpu_worker"] + drives["cpu_server"]) / count,
    }


def marginal(world: World, runs: int) -> dict[str, float]:
    """What one more step costs: runs of 110 steps less runs of ten."""
    short, long = steps(world, 50, runs, 10), steps(world, 50, runs, 110)
    return {f"{name} a step more": (110 * long[name] - 10 * short[name]) / 100
            for name in ("COMMITs", "WAL B", "table B", "bodies B", "CPU ms")}  # fmt: skip


def inserts(world: World, clients: int, seconds: int) -> dict[str, float]:
    return {"inserts/s": inserts_a_second(world, clients, seconds)}


def single(world: World, starts: int) -> dict[str, float]:
    """W2. Both workers idle, both tasks on one broker, in turns."""
    broker = f"redis+socket://{world.home}/broker/valkey.sock?virtual_host=1"
    path = world.lines("single")
    celery = ["-m", "celery", "-A", "bench.single:app", "worker", "--pool", "threads", "--concurrency", "10",
              "-Q", "bench.empty", "--without-gossip", "--without-mingle", "--without-heartbeat"]  # fmt: skip
    sides = [world.start("manage.py", "worker", "--name", "one", "--concurrency", "10", lines=path),
             world.start(*celery, env={"BENCH_BROKER": broker})]  # fmt: skip
    try:
        took: dict[str, list[float]] = world.measure(
            "-m", "bench.single", "--starts", str(starts), env={"BENCH_BROKER": broker}
        )
    finally:
        for side in sides:
            side.terminate()
        for side in sides:
            side.wait(40)
    return {
        "run p50 ms": median(took["run"]),
        "run p95 ms": percentile(took["run"], 95),
        "start() p50 ms": median(took["start"]),
        "empty task p50 ms": median(took["task"]),
        "empty task p95 ms": percentile(took["task"], 95),
        "run / empty task": median(took["run"]) / median(took["task"]),
    }


def resume(world: World, steps: int = LONG) -> dict[str, float]:
    """W4. The process that comes back has driven another, short run before."""
    path = world.lines("resume")
    build = world.start("-m", "bench.resume", "build", "--steps", str(steps), lines=path)
    out, _ = build.communicate(timeout=300)
    if build.returncode != -9:
        raise SideFailed(f"the long run did not die as it should: {build.returncode}")
    said = world.measure("-m", "bench.resume", "go", "--steps", str(steps), "--run", out.strip(), lines=path)
    return {"claim to next step ms": 1e3 * said["seconds"], "CPU ms": 1e3 * said["cpu"]}


def resume_dbos(world: World) -> dict[str, float]:
    """W4. From just before launch(), which is when it looks for what to recover."""
    path = world.lines("resume-dbos")
    build = world.start(
        "-m", "bench.long_dbos", "build", "--steps", str(LONG), lines=path, env={"BENCH_DBOS": world.dbos_url}
    )
    build.wait(300)
    before = len(lines(path))
    said: dict[str, Any] = world.measure(
        "-m", "bench.long_dbos", "recover", lines=path, env={"BENCH_DBOS": world.dbos_url}
    )
    (line,) = lines(path)[before:]
    return {"launch to next step ms": 1e3 * (line.at - said["began"])}
