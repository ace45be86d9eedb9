"""W1, DBOS's side: workflows of ten steps, `flying` threads that each call one after the other, in this process."""

from __future__ import annotations

import argparse
import json
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path

from dbos import DBOS

from bench.spent import Meter
from bench.tools import leave_line

STEPS = 10


@DBOS.step()
def noop(n: int) -> dict[str, str]:
    return leave_line(DBOS.workflow_id, n)


@DBOS.workflow()
def steps_of_nothing(steps: int) -> int:
    for n in range(1, steps + 1):
        noop(n)
    return steps


def launch() -> None:
    """With the settings it comes with: a pool of 20 connections, no telemetry."""
    DBOS(
        config={
            "name": "bench",
            "system_database_url": os.environ["BENCH_DBOS"],
            "log_level": "ERROR",
            "application_version": "1",
            "executor_id": "bench",
        }
    )
    DBOS.launch()


def main() -> None:
    given = argparse.ArgumentParser()
    given.add_argument("--flying", type=int, required=True)
    given.add_argument("--runs", type=int, required=True)
    words = given.parse_args()
    launch()
    home = Path(os.environ["HOLDFAST_DATA"]) / "pg"
    meter = Meter(home, f"host={home} user=holdfast dbname=postgres", "dbos")
    with ThreadPoolExecutor(words.flying) as pool:
        list(pool.map(lambda _: steps_of_nothing(STEPS), range(words.flying)))
        Path(os.environ["BENCH_LINES"]).write_bytes(b"")
        meter.start()
        list(pool.map(lambda _: steps_of_nothing(STEPS), range(words.runs)))
        spent = meter.stop()
    print(json.dumps({"steps": STEPS * words.runs, "bodies": 0, "drives": asdict(spent)}), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()
