from datetime import UTC
from typing import Any
from uuid import UUID

import psycopg
import pytest

from journal.committer import Committer
from journal.errors import NoSuchRun
from journal.read import read_entries, read_entry, read_head
from tests.journal.cast import append, call, draft, new_run, obs
from tests.rig.work import work_of

type Conn = psycopg.Connection[Any]


def test_entries_are_read_in_order_from_a_seq_on_by_kind(conn: Conn, committer: Committer) -> None:
    run = new_run(conn)
    committer.append(append(run, 1, 1, 0, call(1), obs(1, n=float("inf")), draft("NOTE"), call(2)))
    entries = read_entries(conn, run)
    assert [(e.seq, e.kind, e.step, e.settles) for e in entries] == [
        (1, "TOOL_CALL", 1, None), (2, "OBS", 1, 1), (3, "NOTE", None, None), (4, "TOOL_CALL", 2, None),
    ]  # fmt: skip
    assert entries[1].body == {"outcome": "succeeded", "n": float("inf")}
    assert entries[0].recorded_at.tzinfo is UTC
    assert read_entries(conn, run, after=1, limit=2) == entries[1:3]
    assert read_entries(conn, run, kinds=["TOOL_CALL"]) == [entries[0], entries[3]]
    assert read_entry(conn, run, 3) == entries[2] and read_entry(conn, run, 5) is None
    head = read_head(conn, run)
    assert (head.epoch, head.last_seq, head.last_recorded_at) == (1, 4, entries[3].recorded_at)
    with pytest.raises(NoSuchRun):
        read_head(conn, UUID(int=7))


def test_ten_times_the_steps_are_ten_times_the_work(conn: Conn, committer: Committer) -> None:
    def written(numbers: range) -> UUID:
        run = new_run(conn)
        for number in numbers:
            steps = range(number * 100 - 99, number * 100 + 1)
            entries = [e for n in steps for e in (call(n), obs(n, result={"id": n, "text": "x" * 80}))]
            committer.append(append(run, 1, number, 0, *entries))
        return run

    few, many = written(range(1, 2)), written(range(1, 11))
    assert len(read_entries(conn, few)) == 200 and len(read_entries(conn, many)) == 2_000
    assert 9 < work_of(lambda: read_entries(conn, many)) / work_of(lambda: read_entries(conn, few)) < 11
