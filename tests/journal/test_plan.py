"""How the hot statement is executed. A wrong plan costs a factor of ten and no test of results would see it."""

import threading
from typing import Any

import psycopg

from journal.lane import Lane
from tests.journal.cast import append, call, draft, new_run, obs, person, send
from tests.journal.projection import Projected

type Conn = psycopg.Connection[Any]


def test_the_hot_statement_reads_by_index_and_touches_one_partition(conn: Conn, lane: Lane) -> None:
    runs = [new_run(conn) for _ in range(3)]
    send(lane, append(runs[0], 1, 1, 0, draft("NOTE")))
    assert lane.conn is not None
    notices: list[str] = []
    lane.conn.add_notice_handler(lambda diagnostic: notices.append(diagnostic.message_primary or ""))
    lane.conn.execute("LOAD 'auto_explain'")
    for setting in ("log_min_duration = 0", "log_nested_statements = on", "log_level = notice", "log_analyze = on"):
        lane.conn.execute(f"SET auto_explain.{setting}".encode())
    notices.clear()
    send(lane, *(append(run, 1, 2, 0, call(1)) for run in runs))
    plan = "\n".join(notices)
    assert "Index Scan using journal_head_pkey on journal_head" in plan and "Insert on journal_entry" in plan
    assert "Seq Scan" not in plan and "Scan on journal_entry" not in plan and "JIT" not in plan
    assert len(notices) <= 4, "no statement of their own for the digest functions: they are inlined"


def test_numbers_of_every_width_are_one_prepared_statement(conn: Conn, lane: Lane) -> None:
    run = new_run(conn)
    for n in (1, 300, 70_000, 2**40):
        send(lane, append(run, 1, n + 1, n, call(0)))
    assert lane.conn is not None
    count = lane.conn.execute("SELECT count(*) FROM pg_prepared_statements WHERE statement ~ 'journal_'").fetchone()
    assert count == (1,)


def test_an_append_makes_no_multixact(database: str) -> None:
    """Heads locked outside a subtransaction and updated inside it would make one a commit, for vacuum to freeze."""
    lane = Lane(database, 100, Projected(), threading.Event())
    with psycopg.connect(database, autocommit=True) as conn:
        conn.execute("CREATE TABLE projected (run uuid PRIMARY KEY, status text, as_of_seq bigint NOT NULL DEFAULT 0)")
        conn.execute("CREATE EXTENSION pageinspect")
        runs = [new_run(conn) for _ in range(5)]
        person(conn, runs[0], "r", draft("NOTE"))
        for n in range(1, 6):
            send(lane, *(append(run, 1, n, 0, obs(n), call(n + 1), then={"status": "x"}) for run in runs))
        multis = conn.execute(
            """SELECT count(*) FILTER (WHERE t_infomask & 4096 > 0), count(*)
            FROM generate_series(0, pg_relation_size('journal_head') / 8192 - 1) AS page,
                 heap_page_items(get_raw_page('journal_head', page::int))"""
        ).fetchone()
    lane.close()
    assert multis is not None and multis[0] == 0 and multis[1] >= 5
