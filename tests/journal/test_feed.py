import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any
from uuid import UUID, uuid4

import psycopg
from psycopg_pool import ConnectionPool

from journal.feed import CHANNEL, LISTEN, NOTIFY, Listener, Notifier
from tests.journal.waiting import until

LISTENERS = """FROM pg_stat_activity
    WHERE query LIKE '%LISTEN %holdfast_feed' AND datname = current_database() AND pid <> pg_backend_pid()"""
KILL = f"SELECT pg_terminate_backend(pid) {LISTENERS}"
NOTIFYING = """SELECT pid FROM pg_stat_activity
    WHERE query LIKE '%pg_notify%' AND datname = current_database() AND pid <> pg_backend_pid()"""
LISTENING = f"SELECT count(*) {LISTENERS}"


def connecting(dsn: str) -> Callable[[], psycopg.Connection[Any]]:
    return partial(psycopg.connect, dsn, autocommit=True)


def heard(dsn: str, work: Callable[[Listener], Awaitable[Any]], **how: Any) -> Any:
    return asyncio.run(asyncio.wait_for(work(Listener(dsn, **how)), 60))  # type: ignore[arg-type]


def test_touched_runs_are_told_together_and_not_more_often_than_each_period(journal_dsn: str) -> None:
    notifier, ids = Notifier(connecting(journal_dsn), period=0.05), [uuid4() for _ in range(450)]
    with psycopg.connect(journal_dsn, autocommit=True) as conn:
        conn.execute(LISTEN.encode())
        notifier.touch(ids[0])
        for run_id in ids * 3:
            notifier.touch(run_id)
        notifier.close()
        told: list[str] = []
        for message in conn.notifies(timeout=60, stop_after=1):
            told.append(message.payload)
        told += [message.payload for message in conn.notifies(timeout=0.3)]
    assert {UUID(text) for payload in told for text in payload.split(",")} == set(ids)
    assert len(told) <= 8 and max(map(len, told)) < 8000


def test_a_notifier_survives_its_connection(journal_dsn: str) -> None:
    one, autocommit = uuid4(), {"autocommit": True}
    with (
        ConnectionPool(journal_dsn, min_size=1, max_size=1, kwargs=autocommit, open=True) as pool,
        psycopg.connect(journal_dsn, autocommit=True) as conn,
    ):
        notifier = Notifier(pool.connection, period=0.01)
        notifier.touch(uuid4())
        (pid,) = until(lambda: conn.execute(NOTIFYING).fetchone())
        conn.execute(LISTEN.encode())
        conn.execute("SELECT pg_terminate_backend(%s, 5000)", (pid,))
        notifier.touch(one)
        told: list[str] = []
        until(lambda: str(one) in "".join(told) or told.extend(m.payload for m in conn.notifies(timeout=0.2)))
        notifier.close()


def test_nobody_waits_for_a_database_that_is_away() -> None:
    notifier = Notifier(connecting("host=/nowhere/at/all"))
    notifier.touch(uuid4())
    notifier.close()


def test_a_stream_hears_of_its_run_and_a_list_of_all(journal_dsn: str) -> None:
    mine, other = uuid4(), uuid4()

    async def work(listener: Listener) -> tuple[Any, ...]:
        async with listener.subscribe(mine) as one, listener.subscribe() as every:
            assert await one.get(10) == await every.get(10) == "refresh", (
                "what came before the connection was not heard"
            )
            notifier = Notifier(connecting(journal_dsn))
            notifier.touch(mine, other)
            notifier.close()
            return await one.get(10), await every.get(10), await one.get(0.05)

    assert heard(journal_dsn, work) == ({mine}, {mine, other}, set())


def test_too_many_changes_become_refresh(journal_dsn: str) -> None:
    async def work(listener: Listener) -> list[Any]:
        async with listener.subscribe() as slow:
            await slow.get(10)
            slow.hear([uuid4() for _ in range(3)])
            slow.hear([uuid4() for _ in range(3)])
            return [await slow.get(10), await slow.get(0.05)]

    assert heard(journal_dsn, work, bound=5) == ["refresh", set()]


def test_a_lost_connection_comes_back_and_says_refresh(journal_dsn: str) -> None:
    mine = uuid4()

    async def work(listener: Listener) -> list[Any]:
        async with listener.subscribe(mine) as one:
            said: list[Any] = [await one.get(10)]
            with psycopg.connect(journal_dsn, autocommit=True) as conn:
                conn.execute(KILL)
                said.append(await one.get(10))
                conn.execute("SELECT pg_notify(%s, %s)", (CHANNEL, "not ours"))
                conn.execute("SELECT pg_notify(%s, %s)", (CHANNEL, str(mine)))
            return [*said, await one.get(10)]

    assert heard(journal_dsn, work) == ["refresh", "refresh", {mine}]


def test_all_streams_share_one_connection_that_ends_with_the_last(journal_dsn: str) -> None:
    async def work(listener: Listener) -> None:
        with psycopg.connect(journal_dsn, autocommit=True) as conn:
            async with listener.subscribe() as one, listener.subscribe() as two, listener.subscribe() as three:
                for stream in (one, two, three):
                    assert await stream.get(10) == "refresh"
                assert conn.execute(LISTENING).fetchone() == (1,)
            await asyncio.sleep(0)
            await asyncio.to_thread(until, lambda: conn.execute(LISTENING).fetchone() == (0,))

    heard(journal_dsn, work)


def test_a_notify_is_spared_where_nobody_listens(journal_dsn: str) -> None:
    """It would be a commit: the transaction gets an id only if it tells somebody."""
    for listens in (False, True):
        with psycopg.connect(journal_dsn, autocommit=True) as listening, psycopg.connect(journal_dsn) as telling:
            if listens:
                listening.execute(LISTEN.encode())
            told = telling.execute(NOTIFY, (CHANNEL, str(uuid4()))).rowcount
            assert told == (1 if listens else 0)
