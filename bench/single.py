"""W2: start() to result of a one-step run through Celery, next to an empty Celery task on the same broker."""

from __future__ import annotations

import argparse
import json
import os
import time
from uuid import UUID

import django
import psycopg
from celery import Celery
from django.conf import settings

_where = os.environ.get("BENCH_BROKER")
app = Celery("empty", broker=_where, backend=_where, set_as_current=False)
app.conf.update(task_default_queue="bench.empty", worker_enable_remote_control=False, worker_prefetch_multiplier=1)
RESULT = "SELECT body FROM journal_entry WHERE run_id = %s AND kind = 'DONE'"


@app.task(name="bench.empty")
def empty() -> int:
    return 1


def main() -> None:
    given = argparse.ArgumentParser()
    given.add_argument("--starts", type=int, required=True)
    words = given.parse_args()
    django.setup()
    from runs.sdk import start

    with psycopg.connect(settings.HOLDFAST_DSN, autocommit=True) as conn:

        def run() -> None:
            began = time.perf_counter()
            run_id = start("bench-noop", {"steps": 1})
            took["start"].append(1e3 * (time.perf_counter() - began))
            while not _result(conn, run_id):
                time.sleep(0.0005)

        def task() -> None:
            empty.delay().get(timeout=20)

        took: dict[str, list[float]] = {"start": [], "run": [], "task": []}
        for _ in range(10):
            run()
            task()
        took["start"].clear()
        for _ in range(words.starts):  # in turns: the machine's moods hit both alike
            for name, act in (("run", run), ("task", task)):
                began = time.perf_counter()
                act()
                took[name].append(1e3 * (time.perf_counter() - began))
                time.sleep(0.005)
    print(json.dumps(took))


def _result(conn: psycopg.Connection[tuple[object, ...]], run_id: UUID) -> bool:
    return conn.execute(RESULT, (run_id,), prepare=True).fetchone() is not None


if __name__ == "__main__":
    main()
