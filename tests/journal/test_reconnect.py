"""Connections that break at any moment: nothing twice, nothing lost, no refusal forgotten."""

import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import UUID

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from journal.committer import Committer
from tests.journal.cast import append, call, draft, new_run, obs, person
from tests.journal.oracle import check_journal
from tests.journal.projection import Projected
from tests.journal.proxy import Proxy

type Conn = psycopg.Connection[Any]
# The CommandComplete of a lone append, and of one with a projection behind it.
ANSWERS = (None, b"SELECT ", b"COMMIT\0", None)
KILL = """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'"""


def test_an_answer_lost_behind_the_commit_repeats_and_loses_nothing(conn: Conn, journal_dsn: str) -> None:
    server = conninfo_to_dict(journal_dsn)["host"]
    with TemporaryDirectory(prefix="p") as folder:
        proxy = Proxy(f"{server}/.s.PGSQL.5432", Path(folder))
        committer = Committer(make_conninfo(journal_dsn, host=folder), Projected())
        runs = [new_run(conn) for _ in range(5)]
        person(conn, runs[0], "r", draft("SIGNAL"))  # its decisions are refused, its outcomes written
        verdicts: list[str] = []
        seen: dict[UUID, int | None] = dict.fromkeys(runs, 0) | {runs[0]: 1}
        for number in range(1, 21):
            proxy.eat = ANSWERS[number % 4]
            then = {"status": "running"} if number % 4 == 2 else None
            futures = [
                committer.submit(append(run, 1, number, 0, obs(number), call(number + 1), then=then)) for run in runs
            ]
            for answer in [future.result(60) for future in futures]:
                verdicts.append(answer.verdict)
                assert answer.first_seq == (seen[answer.run_id] or 0) + 1
                seen[answer.run_id] = answer.last_seq
        committer.close()
        proxy.close()
    assert proxy.eaten == 10 and verdicts.count("already") >= 8 and set(verdicts) == {"written", "already", "refused"}
    assert [len(check_journal(conn, run)) for run in runs] == [1 + 20] + [40] * 4


def test_backends_killed_at_any_moment_repeat_and_lose_nothing(conn: Conn, committer: Committer) -> None:
    runs = [new_run(conn) for _ in range(10)]
    stop = time.monotonic() + 3

    def drive(run: UUID) -> int:
        number = 0
        while time.monotonic() < stop:
            number += 1
            answer = committer.append(append(run, 1, number, 0, obs(number), call(number + 1)))
            assert answer.verdict in ("written", "already")
        return number

    kills, dice, pause = 0, random.Random(7), threading.Event()
    with ThreadPoolExecutor(10) as pool:
        counts = [pool.submit(drive, run) for run in runs]
        while time.monotonic() < stop:
            pause.wait(dice.random() * 0.05)
            kills += len(conn.execute(KILL).fetchall())
        appended = [count.result(60) for count in counts]
    assert [len(check_journal(conn, run)) for run in runs] == [2 * count for count in appended]
    assert kills > 10 and min(appended) > 0
