"""W1, Holdfast's side: starts runs, then drives them through Worker.advance, `flying` at a time, in this process."""

from __future__ import annotations

import argparse
import json
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from uuid import UUID

import django
import psycopg
from django.conf import settings
from django.db import connection
from psycopg.conninfo import make_conninfo

from bench.spent import Meter

BODIES = "SELECT coalesce(sum(octet_length(body)), 0)::bigint FROM journal_entry WHERE run_id = ANY(%s)"
UNFINISHED = "SELECT count(*) FROM runs_run WHERE id = ANY(%s) AND status <> 'done'"


def main() -> None:
    given = argparse.ArgumentParser()
    given.add_argument("--flying", type=int, required=True)
    given.add_argument("--runs", type=int, required=True)
    given.add_argument("--length", type=int, default=10)
    words = given.parse_args()
    django.setup()
    from runs import starting
    from runs.engine import process
    from runs.registry import announce

    vars(starting)["dispatch"] = lambda run_id, release_id: True  # no broker, as on the other side: driven at once
    releases = {release.agent: release.id for release in announce()}
    worker = process.open_worker("bench", "threads", words.flying, lambda: None)
    release = releases["bench-noop"]

    def start(_: int) -> UUID:
        return starting.start_run(agent="bench-noop", input={"steps": words.length}, actor="bench")[0].id

    def drive(run_id: UUID) -> None:
        park = worker.advance(run_id, release)
        assert park is not None and park.status == "done", (run_id, park)

    admin = make_conninfo(settings.HOLDFAST_DSN, dbname="postgres")
    meter = Meter(settings.HOLDFAST_DATA / "pg", admin, "holdfast")
    with ThreadPoolExecutor(words.flying) as pool:
        warm = list(pool.map(start, range(2 * words.flying)))
        list(pool.map(drive, warm))
        Path(os.environ["BENCH_LINES"]).write_bytes(b"")
        meter.start()
        made = list(pool.map(start, range(words.runs)))
        starts = meter.stop()
        meter.start()
        list(pool.map(drive, made))
        drives = meter.stop()
        list(pool.map(lambda _: connection.close(), range(words.flying)))
    with psycopg.connect(settings.HOLDFAST_DSN) as conn:
        ((bodies,),) = conn.execute(BODIES, (made,)).fetchall()
        assert conn.execute(UNFINISHED, (made,)).fetchall() == [(0,)]
    process.close_worker()
    count = words.length * words.runs
    print(json.dumps({"steps": count, "bodies": bodies, "starts": asdict(starts), "drives": asdict(drives)}))


if __name__ == "__main__":
    main()
