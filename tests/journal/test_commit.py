"""The committer: many callers, one statement."""

import signal
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from journal import crash
from journal.committer import Committer
from journal.entries import Draft
from journal.errors import CommitterClosed
from tests.journal.cast import append, call, draft, kinds, new_run, obs, person, told
from tests.journal.oracle import check_journal
from tests.journal.waiting import until

type Conn = psycopg.Connection[Any]


class Abandoned(BaseException):
    """What a crash point raises in place of a death."""


def all_at_once(count: int, work: Callable[[int], Any]) -> list[Any]:
    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(work, range(count)))


def test_callers_of_fifty_runs_share_commits(conn: Conn, committer: Committer, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = [new_run(conn) for _ in range(50)]
    commits: list[str] = []
    monkeypatch.setattr(crash, "hook", lambda name: commits.append(name) if name == "after-commit" else None)

    def drive(n: int) -> None:
        for number in range(1, 11):
            assert committer.append(append(runs[n], 1, number, 0, obs(number), call(number + 1))).verdict == "written"

    all_at_once(50, drive)
    assert len(commits) < 250, "of 500 appends"
    for run in runs:
        assert len(check_journal(conn, run)) == 20


def test_a_lone_caller_commits_on_its_own_thread(conn: Conn, committer: Committer) -> None:
    run, before = new_run(conn), threading.active_count()
    for number in range(1, 6):
        assert told(committer.append(append(run, 1, number, 0, draft("NOTE")))) == ("written", number, number)
    assert threading.active_count() == before


def test_submitted_appends_of_one_run_are_written_in_order(conn: Conn, committer: Committer) -> None:
    run = new_run(conn)
    futures = [committer.submit(append(run, 1, number, 0, draft("NOTE"))) for number in range(1, 31)]
    assert [told(future.result(60)) for future in futures] == [("written", n, n) for n in range(1, 31)]
    check_journal(conn, run)


def test_submitting_and_waiting_callers_mix(conn: Conn, committer: Committer) -> None:
    runs = [new_run(conn) for _ in range(12)]

    def drive(n: int) -> None:
        for number in range(1, 21):
            a = append(runs[n], 1, number, 0, draft("NOTE"))
            answer = committer.append(a) if (n + number) % 3 else committer.submit(a).result(60)
            assert answer.verdict == "written"

    all_at_once(12, drive)
    assert [len(check_journal(conn, run)) for run in runs] == [20] * 12


def test_an_open_transaction_on_one_head_delays_no_other_run(
    conn: Conn, committer: Committer, journal_dsn: str
) -> None:
    held, *others = (new_run(conn) for _ in range(20))

    def drive(n: int) -> None:
        for number in range(1, 41):
            assert committer.append(append(others[n], 1, number, 0, draft("NOTE"))).verdict == "written"

    with ThreadPoolExecutor(19) as pool, psycopg.connect(journal_dsn) as other:
        person(other, held, "r", draft("NOTE"))
        first = committer.submit(append(held, 1, 1, 0, call(1)))
        second = committer.submit(append(held, 1, 2, 0, obs(1)))
        done, waiting = wait([pool.submit(drive, n) for n in range(19)], 60)
        assert not waiting and not first.done() and not second.done(), "all others are written while the head is held"
        for drives in done:
            drives.result()
        other.commit()
        assert (told(first.result(60)), told(second.result(60))) == (("written", 2, 2), ("written", 3, 3)), "in order"
    for run in (held, *others):
        check_journal(conn, run)


def test_the_holder_of_a_held_head_waits_too_and_then_is_written(
    conn: Conn, committer: Committer, journal_dsn: str
) -> None:
    run = new_run(conn)
    with ThreadPoolExecutor(1) as pool, psycopg.connect(journal_dsn) as other:
        person(other, run, "r", draft("SIGNAL"))
        mine = pool.submit(committer.append, append(run, 1, 1, 0, obs(1), call(2)))
        until(lambda: committer._waiter is not None)
        other.commit()
        assert told(mine.result(60)) == ("refused", 2, 2)
    assert kinds(check_journal(conn, run)) == ["SIGNAL", "OBS"]


def test_a_body_that_cannot_be_encoded_is_described_and_sinks_nothing(conn: Conn, committer: Committer) -> None:
    runs = [new_run(conn) for _ in range(5)]

    def drive(n: int) -> Any:
        result = threading.Lock() if n == 2 else n
        return told(committer.append(append(runs[n], 1, 1, 0, obs(1, result=result))))

    assert all_at_once(5, drive) == [("written", 1, 1)] * 5
    assert b'{"$":"unencodable","type":"_thread.lock","path":"result"}' in check_journal(conn, runs[2])[0][9]


def test_an_error_goes_to_the_caller_of_the_faulty_append_only(conn: Conn, committer: Committer) -> None:
    runs = [new_run(conn) for _ in range(8)]

    def drive(n: int) -> Any:
        actor = "nul \0" if n == 3 else "worker"
        try:
            return committer.append(append(runs[n], 1, 1, 0, Draft("NOTE", {}, actor=actor))).verdict
        except psycopg.Error as error:
            return type(error)

    answers = all_at_once(8, drive)
    assert isinstance(answers.pop(3), type) and set(answers) == {"written"}


def test_a_second_settling_outcome_is_told_to_its_run_only(conn: Conn, committer: Committer) -> None:
    runs = [new_run(conn) for _ in range(8)]
    all_at_once(8, lambda n: committer.append(append(runs[n], 1, 1, 0, call(1))))
    person(conn, runs[5], "r", draft("RECONCILE"), obs(1))
    answers = all_at_once(8, lambda n: committer.append(append(runs[n], 1, 2, 1, obs(1))).verdict)
    assert answers.pop(5) == "settled" and set(answers) == {"written"}


def test_closing_fails_what_waits_and_what_comes(conn: Conn, journal_dsn: str) -> None:
    committer, run = Committer(journal_dsn), new_run(conn)
    with psycopg.connect(journal_dsn) as other:
        person(other, run, "r", draft("NOTE"))
        waiting = committer.submit(append(run, 1, 1, 0, call(1)))
        until(lambda: committer._waiter is not None)
        committer.close()
        with pytest.raises(CommitterClosed):
            waiting.result(60)
    with pytest.raises(CommitterClosed):
        committer.append(append(run, 1, 2, 0, call(1)))


def test_closing_ends_the_wait_for_a_database_that_is_away(conn: Conn, journal_dsn: str) -> None:
    committer = Committer(make_conninfo(journal_dsn, host="/nowhere/at/all"))
    with ThreadPoolExecutor(2) as pool:
        waiting = [pool.submit(committer.append, append(UUID(int=n), 1, 1, 0, call(1))) for n in (1, 2)]
        until(lambda: len(committer._lines) == 2)
        committer.close()
        for one in waiting:
            with pytest.raises(CommitterClosed):
                one.result(60)


@pytest.mark.parametrize("point", ["before-commit", "after-commit"])
def test_a_thread_torn_out_of_a_commit_lets_nobody_wait_for_ever(
    conn: Conn, journal_dsn: str, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    committer, runs = Committer(journal_dsn), [new_run(conn) for _ in range(6)]

    def die(name: str) -> None:
        if name == point:
            raise Abandoned

    monkeypatch.setattr(crash, "hook", die)

    def drive(n: int) -> type[BaseException] | None:
        try:
            committer.append(append(runs[n], 1, 1, 0, call(1)))
        except (Abandoned, CommitterClosed) as error:
            return type(error)
        return None

    ends = all_at_once(6, drive)
    assert Abandoned in ends and None not in ends
    monkeypatch.setattr(crash, "hook", None)
    committer.close()
    written = sum(len(check_journal(conn, run)) for run in runs)
    assert written == 0 if point == "before-commit" else written > 0


class Interrupted(BaseException):
    """Ctrl-C."""


def test_a_caller_that_is_interrupted_leaves_its_append_and_blocks_nobody(conn: Conn, journal_dsn: str) -> None:
    committer, run, mine = Committer(journal_dsn, patience=0.01), new_run(conn), threading.main_thread().ident or 0

    def interrupt(*_: Any) -> None:
        raise Interrupted

    def press_ctrl_c() -> None:
        until(lambda: sys._current_frames()[mine].f_code.co_name == "_wait")
        signal.pthread_kill(mine, signal.SIGALRM)

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with psycopg.connect(journal_dsn) as other:
            person(other, run, "r", draft("NOTE"))
            threading.Thread(target=press_ctrl_c).start()
            with pytest.raises(Interrupted):
                committer.append(append(run, 1, 1, 0, call(1)))
    finally:
        signal.signal(signal.SIGALRM, before)
    assert told(committer.append(append(run, 1, 2, 0, obs(1)))) == ("written", 3, 3)
    committer.close()
    assert kinds(check_journal(conn, run)) == ["NOTE", "TOOL_CALL", "OBS"]


def test_an_append_without_entries_is_refused_at_once(committer: Committer) -> None:
    with pytest.raises(ValueError, match="at least one entry"):
        committer.append(append(UUID(int=1), 1, 1, 0))
