"""W3 and W4, DBOS's side. A workflow of many steps; the process dies in the last, or is killed by the benchmark."""

from __future__ import annotations

import argparse
import json
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from dbos import DBOS

from bench.steps_dbos import launch
from bench.tools import leave_line


@DBOS.step()
def deadly(n: int, at: int, mark: str) -> dict[str, str]:
    if n == at and not Path(mark).exists():
        Path(mark).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return leave_line(DBOS.workflow_id, n)


@DBOS.workflow()
def deadly_steps(steps: int, at: int, mark: str) -> int:
    for n in range(1, steps + 1):
        deadly(n, at, mark)
    return steps


@DBOS.step()
def rest(n: int) -> dict[str, str]:
    answer = leave_line(DBOS.workflow_id, n)
    time.sleep(0.05)
    return answer


@DBOS.workflow()
def steps_of_rest(steps: int) -> int:
    for n in range(1, steps + 1):
        rest(n)
    return steps


def main() -> None:
    given = argparse.ArgumentParser()
    given.add_argument("act", choices=("build", "fly", "recover"))
    given.add_argument("--steps", type=int, default=1000)
    given.add_argument("--runs", type=int, default=1)
    words = given.parse_args()
    began = time.monotonic()
    launch()
    if words.act == "build":
        mark = Path(os.environ["BENCH_LINES"] + ".mark")
        mark.unlink(missing_ok=True)
        deadly_steps(words.steps + 1, words.steps + 1, str(mark))
    elif words.act == "fly":
        with ThreadPoolExecutor(words.runs) as pool:
            list(pool.map(steps_of_rest, [words.steps] * words.runs))
    else:
        while DBOS.list_workflows(status=["PENDING", "ENQUEUED"], load_input=False, load_output=False):
            time.sleep(0.05)
        print(json.dumps({"began": began, "ended": time.monotonic()}), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()
