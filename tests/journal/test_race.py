"""Committers, people and claims on the same runs."""

import random
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

import psycopg

from journal.lane import Lane, Ticket
from tests.journal.cast import append, call, draft, new_run, person
from tests.journal.oracle import check_journal
from tests.journal.projection import Projected

SECONDS = 5
DEADLOCKS = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"


def test_committers_people_and_claims_on_the_same_runs_never_deadlock(
    conn: psycopg.Connection[Any], journal_dsn: str
) -> None:
    runs = [new_run(conn, 0) for _ in range(12)]
    for run in runs:
        conn.execute("INSERT INTO projected VALUES (%s, 'queued')", (run,))
    before, stop = conn.execute(DEADLOCKS).fetchone(), time.monotonic() + SECONDS

    def commit(turn: int) -> int:
        lane, dice, number, written = Lane(journal_dsn, 100, Projected(), Event()), random.Random(turn), turn, 0
        while time.monotonic() < stop:
            number += 10
            order = dice.sample(runs, 8) if turn > 1 else runs[:: 1 if turn else -1]
            epochs = dict(
                conn.execute("SELECT run_id, epoch FROM journal_head WHERE run_id = ANY (%s)", (runs,)).fetchall()
            )
            then = dice.choice([None, {"status": "running"}])
            batch = [append(r, epochs[r], number, 0, draft("NOTE"), call(number), then=then) for r in order]
            for _, answer in lane.send([Ticket(a) for a in batch]):
                assert not isinstance(answer, Exception)
                if answer.first_seq is not None and answer.last_seq is not None:
                    written += answer.last_seq - answer.first_seq + 1
        lane.close()
        return written

    def act(turn: int) -> int:
        dice, written = random.Random(turn), 0
        with psycopg.connect(journal_dsn) as other:
            while time.monotonic() < stop:
                run = dice.choice(runs)
                person(other, run, str(dice.random()), draft(dice.choice(["NOTE", "SIGNAL"])))
                other.execute("UPDATE projected SET status = 'held' WHERE run = %s", (run,))
                other.commit()
                written += 1
        return written

    def claim() -> int:
        dice = random.Random(0)
        with psycopg.connect(journal_dsn, autocommit=True) as other:
            while time.monotonic() < stop:
                other.execute("SELECT * FROM journal_raise_epochs_v1(%s)", (dice.sample(runs, 6),))
                Event().wait(0.02)
        return 0

    works: list[Callable[[], int]] = [
        *(lambda n=n: commit(n) for n in range(4)),
        *(lambda n=n: act(n) for n in range(2)),
        claim,
    ]
    with ThreadPoolExecutor(len(works)) as pool:
        written = sum(future.result() for future in [pool.submit(work) for work in works])
    assert conn.execute(DEADLOCKS).fetchone() == before
    assert sum(len(check_journal(conn, run)) for run in runs) == written > 100
