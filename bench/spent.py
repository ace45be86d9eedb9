"""What a stretch of work spent: WAL, COMMITs, table bytes, CPU of this process and of the server."""

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg

LSN = "SELECT pg_current_wal_insert_lsn()::text"
SIZE = """
SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind = 'r' AND n.nspname NOT IN ('pg_catalog', 'information_schema')
"""
TRANSACTIONS = "SELECT xact_commit FROM pg_stat_database WHERE datname = %s"
WAL = """
SELECT coalesce(sum(count) FILTER (WHERE "resource_manager/record_type" = 'Transaction/COMMIT'), 0)::bigint,
       coalesce(sum(record_size), 0)::bigint
FROM pg_get_wal_stats(%s, %s, true)
"""


@dataclass(frozen=True, slots=True)
class Spent:
    """Sums over the stretch. `wal`: bytes of records without full page images. Seconds of CPU."""

    seconds: float
    commits: int
    transactions: int
    wal: int
    table: int
    cpu_worker: float
    cpu_server: float


@dataclass
class Meter:
    """Counts from `start` to `stop`. `home` is the folder of the server, `conninfo` any database but the measured."""

    home: Path
    conninfo: str
    measured: str
    _admin: psycopg.Connection[Any] = field(init=False)
    _there: psycopg.Connection[Any] = field(init=False)

    def __post_init__(self) -> None:
        self._admin = psycopg.connect(self.conninfo, autocommit=True)
        self._there = psycopg.connect(self.conninfo, dbname=self.measured, autocommit=True)

    def start(self) -> None:
        self._size, self._transactions = self._number(SIZE), self._settled_transactions()
        self._lsn = self._position()
        self._server, self._worker = server_cpu(self.home), time.process_time()
        self._began = time.perf_counter()

    def stop(self) -> Spent:
        seconds = time.perf_counter() - self._began
        worker = time.process_time() - self._worker
        before, after = self._server, server_cpu(self.home)
        server = sum(now - before.get(pid, 0) for pid, now in after.items()) / 1e9
        end = self._position()
        size = self._number(SIZE)
        transactions = self._settled_transactions()  # waits, so that the WAL writer has written what is inspected next
        row = self._admin.execute(WAL, (self._lsn, end)).fetchone()
        assert row is not None
        transactions -= self._transactions
        return Spent(seconds, int(row[0]), transactions, int(row[1]), size - self._size, worker, server)

    def _settled_transactions(self) -> int:
        """Backends tell their counts when they have been idle for a moment."""
        time.sleep(1.1)
        return self._number(TRANSACTIONS, self.measured)

    def _number(self, statement: str, *given: str) -> int:
        row = self._there.execute(statement, given).fetchone()
        assert row is not None
        return int(row[0])

    def _position(self) -> str:
        row = self._admin.execute(LSN).fetchone()
        assert row is not None
        return str(row[0])


def server_cpu(home: Path) -> dict[int, int]:
    """Nanoseconds on a CPU of each process of the server."""
    postmaster = int((home / "data/postmaster.pid").read_text().split("\n", 1)[0])
    found = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(stat.read_text().rsplit(")", 1)[1].split()[1])
            if parent == postmaster:
                found[int(stat.parent.name)] = int((stat.parent / "schedstat").read_text().split()[0])
        except (OSError, ValueError, IndexError):
            continue  # it has just ended
    return found
