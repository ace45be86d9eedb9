"""W4, Holdfast's side: `build` makes a run of many steps and dies in the last; `go` claims it and reaches that step."""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path
from uuid import UUID

import django
import psycopg
from django.conf import settings

from bench.tools import lines

END = "UPDATE runs_workersession SET ended_at = clock_timestamp(), end_reason = 'process died' WHERE ended_at IS NULL"


def main() -> None:
    given = argparse.ArgumentParser()
    given.add_argument("act", choices=("build", "go"))
    given.add_argument("--steps", type=int, default=1000)
    given.add_argument("--run", type=UUID)
    words = given.parse_args()
    django.setup()
    from runs import starting
    from runs.engine import process
    from runs.registry import announce

    vars(starting)["dispatch"] = lambda run_id, release_id: True
    vars(process)["dispatch"] = lambda run_id, release_id: True
    release = {release.agent: release.id for release in announce()}["bench-deadly"]
    if words.act == "go":
        with psycopg.connect(settings.HOLDFAST_DSN) as conn:
            conn.execute(END)
    worker = process.open_worker("bench", "threads", 1, lambda: None)

    def start(steps: int, at: int, mark: str) -> UUID:
        return starting.start_run(agent="bench-deadly", input={"steps": steps, "at": at, "mark": mark}, actor="bench")[
            0
        ].id

    if words.act == "build":
        mark = Path(os.environ["BENCH_LINES"] + ".mark")
        mark.unlink(missing_ok=True)
        run_id = start(words.steps + 1, words.steps + 1, str(mark))
        print(run_id, flush=True)
        while True:
            worker.advance(run_id, release)
    worker.advance(start(3, 0, ""), release)  # the process is warm
    before = len(lines(Path(os.environ["BENCH_LINES"])))
    began, cpu = time.monotonic(), time.process_time()
    worker.advance(words.run, release)
    cpu = time.process_time() - cpu
    found = lines(Path(os.environ["BENCH_LINES"]))[before:]
    assert [line.step for line in found] == [words.steps + 1], found
    print(json.dumps({"seconds": found[0].at - began, "cpu": cpu}), flush=True)
    process.close_worker()


if __name__ == "__main__":
    main()
