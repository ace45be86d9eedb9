"""once(): a user's own service acts once a key, whatever dies in between."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import psycopg
import pytest
from django.db import connection

from demo.agents import letters
from runs import testing
from runs.once import ONCE_TABLE, KeyReused, known, once
from tests.rig.ledger import ROOT

WORK = """
import os, signal, sys
import psycopg
from runs.once import once
conn = psycopg.connect(sys.argv[1])
def work():
    conn.execute("INSERT INTO deed VALUES ('done')")
    if sys.argv[2] == "in the work":
        os.kill(os.getpid(), signal.SIGKILL)
    return {"deed": 1}
once(conn, "k", work)
if sys.argv[2] == "before the answer":
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def place(database: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(database, autocommit=True) as conn:
        conn.execute(ONCE_TABLE)
        conn.execute("CREATE TABLE deed (what text)")
        yield conn


def do(conn: psycopg.Connection[Any], key: str = "k", args: Any = None) -> Any:
    def work() -> dict[str, int]:
        conn.execute("INSERT INTO deed VALUES ('done')")
        return {"deed": deeds(conn)}

    return once(conn, key, work, args=args)


def deeds(conn: psycopg.Connection[Any]) -> int:
    row = conn.execute("SELECT count(*) FROM deed").fetchone()
    assert row is not None
    return int(row[0])


@pytest.mark.parametrize("key", [None, 5, "", "k\0", "\udcff"])
def test_a_key_that_is_none_does_nothing(place: psycopg.Connection[Any], key: Any) -> None:
    with pytest.raises(ValueError, match=r"once: a key is a text that is not empty, like ctx\.key, not "):
        do(place, key)
    assert deeds(place) == 0


def test_the_second_call_is_told_what_the_first_did(place: psycopg.Connection[Any]) -> None:
    assert do(place, args={"a": 1}) == do(place, args={"a": 1}) == {"deed": 1}
    assert deeds(place) == 1
    assert known(place, "k") == (True, {"deed": 1}) and known(place, "other") == (False, None)


def test_other_arguments_under_the_same_key_are_refused(place: psycopg.Connection[Any]) -> None:
    do(place, args={"a": 1})
    with pytest.raises(KeyReused, match=r"used before with other arguments.*\(k\)"):
        do(place, args={"a": 2})
    assert deeds(place) == 1


def test_work_that_raises_frees_the_key(place: psycopg.Connection[Any]) -> None:
    def fails() -> None:
        place.execute("INSERT INTO deed VALUES ('half done')")
        raise LookupError

    with pytest.raises(LookupError):
        once(place, "k", fails)
    with pytest.raises(ValueError, match=r"result\.socket cannot be kept"):
        once(place, "k", lambda: {"socket": object()})
    assert deeds(place) == 0 and do(place) == {"deed": 1}


def test_it_joins_the_callers_transaction(place: psycopg.Connection[Any]) -> None:
    with pytest.raises(KeyboardInterrupt), place.transaction():
        do(place)
        raise KeyboardInterrupt
    assert deeds(place) == 0 and known(place, "k") == (False, None)


def test_two_at_the_same_time_act_once(place: psycopg.Connection[Any], database: str) -> None:
    entered, answers = threading.Event(), []

    def second() -> None:
        with psycopg.connect(database, autocommit=True) as other:
            entered.set()
            answers.append(do(other))

    with place.transaction():
        answers.append(do(place))
        thread = threading.Thread(target=second)
        thread.start()
        assert entered.wait(60)
    thread.join(60)
    assert answers == [{"deed": 1}] * 2 and deeds(place) == 1


@pytest.mark.parametrize(("moment", "left"), [("in the work", 0), ("before the answer", 1)])
def test_kill_9_leaves_all_or_nothing(place: psycopg.Connection[Any], database: str, moment: str, left: int) -> None:
    died = subprocess.run([sys.executable, "-c", WORK, database, moment], cwd=ROOT, timeout=60, check=False)
    assert died.returncode == -signal.SIGKILL and deeds(place) == left
    subprocess.run([sys.executable, "-c", WORK, database, "not at all"], cwd=ROOT, timeout=60, check=True)
    assert deeds(place) == 1


@pytest.mark.django_db(transaction=True)
def test_djangos_connection_does_as_well() -> None:
    with connection.cursor() as cursor:
        cursor.execute(ONCE_TABLE)
    done: list[int] = []
    for _ in range(2):
        assert once(connection, "k", lambda: done.append(1) or "said") == "said"  # type: ignore[func-returns-value]
    assert done == [1]


@pytest.fixture
def mailroom(database: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    command = [sys.executable, "-m", "demo.mailroom", "--dsn", database, "--port", "0"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        monkeypatch.setenv("HOLDFAST_MAILROOM_URL", process.stdout.readline().partition(" ")[2].strip())
        yield database
        process.terminate()


def test_the_mailroom_posts_a_letter_once(mailroom: str) -> None:
    given = {"to": ["ada@example.org", "max@example.org"], "body": "good day"}
    run = testing.run(letters.letters, given, tools=testing.REAL, crash_at="after-effect", n=2)
    assert run.result == {"posted": [1, 2]}
    with psycopg.connect(mailroom) as conn:
        assert conn.execute("SELECT address FROM mailroom_letter ORDER BY id").fetchall() == [(a,) for a in given["to"]]
    address = os.environ["HOLDFAST_MAILROOM_URL"]
    other = httpx.post(
        f"{address}/letters", json={"address": "x", "body": "y"}, headers={"Idempotency-Key": run.calls[0].key}
    )
    assert other.status_code == 409 and "other arguments" in other.json()["error"]
