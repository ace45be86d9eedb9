"""A batch sent by one lane: verdicts, guards, time."""

import threading
from typing import Any
from uuid import UUID

import psycopg

from journal.entries import STEERING, Draft
from journal.lane import Lane
from tests.journal.cast import append, call, draft, kinds, new_run, obs, person, send
from tests.journal.oracle import check_journal

type Conn = psycopg.Connection[Any]


def test_each_run_of_a_batch_gets_its_own_verdict(conn: Conn, lane: Lane, journal_dsn: str) -> None:
    written, already, refused, refused_empty, settled, lost, busy = (new_run(conn, 4) for _ in range(7))
    for run in (already, settled):
        assert send(lane, append(run, 4, 1, 0, call(1), obs(1))) == [("written", 1, 2)]
    for run in (refused, refused_empty):
        assert person(conn, run, "r", draft("SIGNAL")) == ("written", 1, 1)
    batch = [
        append(
            run,
            3 if run == lost else 4,
            1 if run == already else 2,
            0,
            *([call(9)] if run == refused_empty else [obs(1), call(2)]),
        )
        for run in (written, already, refused, refused_empty, settled, lost, busy, UUID(int=7))
    ]
    with psycopg.connect(journal_dsn) as other:
        other.execute("SELECT FROM journal_head WHERE run_id = %s FOR UPDATE", (busy,))
        assert send(lane, *batch) == [
            ("written", 1, 2), ("already", 1, 2), ("refused", 2, 2), ("refused", None, None),
            ("settled", None, None), ("lost", None, None), ("busy", None, None), ("no such run", None, None),
        ]  # fmt: skip
    lengths = [len(check_journal(conn, run)) for run in (written, already, refused, refused_empty, settled, lost, busy)]
    assert lengths == [2, 2, 2, 1, 2, 0, 0]


def test_a_resend_of_a_refused_append_is_refused_again_and_not_already(conn: Conn, lane: Lane) -> None:
    run = new_run(conn)
    person(conn, run, "r", draft("CONTROL"))
    refused = append(run, 1, 1, 0, obs(1), call(2))
    assert send(lane, refused) == send(lane, refused) == [("refused", 2, 2)]
    person(conn, run, "s", draft("NOTE"))
    assert send(lane, refused) == [("refused", 2, 2)]
    assert send(lane, append(run, 1, 2, 3, call(2))) == [("written", 4, 4)]
    assert kinds(check_journal(conn, run)) == ["CONTROL", "OBS", "NOTE", "TOOL_CALL"]


def test_an_older_number_is_already_without_its_seqs(conn: Conn, lane: Lane) -> None:
    run = new_run(conn)
    for number in (1, 2):
        send(lane, append(run, 1, number, 0, obs(number)))
    assert send(lane, append(run, 1, 1, 0, obs(1))) == [("already", None, None)]
    assert send(lane, append(run, 1, 2, 0, obs(2))) == [("already", 2, 2)]


def test_only_steering_entries_make_seen_stale(conn: Conn, lane: Lane) -> None:
    run = new_run(conn)
    person(conn, run, "n", draft("NOTE"))
    assert send(lane, append(run, 1, 1, 0, call(1))) == [("written", 2, 2)]
    for n, kind in enumerate(sorted(STEERING), 2):
        _, seq, _ = person(conn, run, kind, draft(kind))
        assert seq is not None
        assert send(lane, append(run, 1, n * 10, seq - 1, call(n))) == [("refused", None, None)]
        assert send(lane, append(run, 1, n * 10, seq, call(n))) == [("written", seq + 1, seq + 1)]
    check_journal(conn, run)


def test_a_new_epoch_fences_the_old_one_and_starts_the_numbers_anew(conn: Conn, lane: Lane) -> None:
    run = new_run(conn)
    assert send(lane, append(run, 1, 5, 0, call(1))) == [("written", 1, 1)]
    assert conn.execute("SELECT * FROM journal_raise_epochs_v1(%s)", ([run],)).fetchall() == [(run, 2, 1)]
    assert send(lane, append(run, 1, 6, 1, obs(1))) == [("lost", None, None)]
    assert send(lane, append(run, 2, 1, 1, obs(1))) == [("written", 2, 2)]
    check_journal(conn, run)


def test_one_settled_intent_and_one_faulty_entry_do_not_sink_the_batch(conn: Conn, lane: Lane) -> None:
    runs = [new_run(conn) for _ in range(100)]
    assert set(send(lane, *(append(run, 1, 1, 0, call(1)) for run in runs))) == {("written", 1, 1)}
    person(conn, runs[42], "r", draft("RECONCILE"), obs(1))
    faulty = Draft("OBS", {}, 1, 1, actor="nul \0 is no text")
    answers = send(lane, *(append(run, 1, 2, 1, faulty if run == runs[77] else obs(1)) for run in runs))
    assert answers[42] == ("settled", None, None)
    assert isinstance(answers[77], Exception)
    assert {a for n, a in enumerate(answers) if n not in (42, 77)} == {("written", 2, 2)}
    for run in runs:
        check_journal(conn, run)


def test_two_outcomes_of_one_intent_in_one_append_are_an_error_of_their_caller(conn: Conn, lane: Lane) -> None:
    run, other = new_run(conn), new_run(conn)
    twice, fine = send(lane, append(run, 1, 1, 0, obs(1), obs(1)), append(other, 1, 1, 0, obs(1)))
    assert isinstance(twice, psycopg.errors.UniqueViolation) and fine == ("written", 1, 1)
    assert check_journal(conn, run) == []


def test_an_open_insert_that_refers_to_a_head_does_not_make_it_busy(conn: Conn, lane: Lane, journal_dsn: str) -> None:
    run = new_run(conn)
    with psycopg.connect(journal_dsn) as other:
        other.execute("CREATE TEMP TABLE child (run uuid)")
        other.execute("SELECT FROM journal_head WHERE run_id = %s FOR KEY SHARE", (run,))  # as a foreign key does
        assert send(lane, append(run, 1, 1, 0, call(1))) == [("written", 1, 1)]


def test_recorded_at_is_read_after_the_lock_and_never_runs_backwards(conn: Conn, lane: Lane, journal_dsn: str) -> None:
    run = new_run(conn)
    with psycopg.connect(journal_dsn) as other:
        other.execute("SELECT now()")  # its now() is older than the worker's append
        send(lane, append(run, 1, 1, 0, call(1)))
        person(other, run, "r", draft("NOTE"))
    ahead = "UPDATE journal_head SET last_recorded_at = last_recorded_at + interval '1 hour' WHERE run_id = %s"
    conn.execute(ahead, (run,))  # as if the clock had been set back by an hour
    send(lane, append(run, 1, 2, 0, obs(1)))
    times = [row[10] for row in check_journal(conn, run)]
    assert (times[2] - times[1]).total_seconds() == 3600


def test_the_projection_follows_written_appends_only(conn: Conn, lane: Lane) -> None:
    good, refused, lost = runs = [new_run(conn) for _ in range(3)]
    for run in runs:
        conn.execute("INSERT INTO projected VALUES (%s, 'queued')", (run,))
    person(conn, refused, "r", draft("CONTROL"))
    then = {"status": "waiting"}
    answers = send(
        lane,
        append(good, 1, 1, 0, call(1), then=then),
        append(refused, 1, 1, 0, obs(1), call(2), then=then),
        append(lost, 0, 1, 0, call(1), then=then),
    )
    assert answers == [("written", 1, 1), ("refused", 2, 2), ("lost", None, None)]
    rows = conn.execute("SELECT status, as_of_seq FROM projected WHERE run = ANY (%s) ORDER BY run", (runs,)).fetchall()
    assert rows == [("waiting", 1), ("queued", 0), ("queued", 0)]


def test_a_projection_that_fails_takes_its_append_back(conn: Conn, journal_dsn: str) -> None:
    class Failing:
        def statements(self, appends: Any) -> list[tuple[str, dict[str, Any]]]:
            divisors = [a.then["by"] for a in appends]
            return [("SELECT 1 / a FROM unnest(%(divisors)b::bigint[]) a", {"divisors": divisors})]

    lane = Lane(journal_dsn, 100, Failing(), threading.Event())
    good, bad = new_run(conn), new_run(conn)
    answers = send(lane, append(good, 1, 1, 0, call(1), then={"by": 1}), append(bad, 1, 1, 0, call(1), then={"by": 0}))
    assert answers[0] == ("written", 1, 1) and isinstance(answers[1], psycopg.errors.DivisionByZero)
    assert check_journal(conn, bad) == []
    lane.close()
