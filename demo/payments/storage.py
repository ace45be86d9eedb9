"""The service's SQLite file: one connection, one lock, short immediate transactions."""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SCHEMA = """
CREATE TABLE IF NOT EXISTS effect (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    key TEXT, action TEXT NOT NULL, args TEXT NOT NULL, at TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS effect_key ON effect (key);
CREATE INDEX IF NOT EXISTS refund_order ON effect (json_extract(args, '$.order_id')) WHERE action = 'refund';
CREATE TABLE IF NOT EXISTS answer (
    key TEXT PRIMARY KEY,
    action TEXT NOT NULL, args TEXT NOT NULL, result TEXT NOT NULL, replays INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS fault (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    action TEXT NOT NULL, key TEXT, remaining INTEGER, spec TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS counter (name TEXT PRIMARY KEY, count INTEGER NOT NULL) WITHOUT ROWID;
"""


class Storage:
    """`path` is created with its folder; ":memory:" keeps nothing."""

    def __init__(self, path: str) -> None:
        if path != ":memory:":
            Path(path).parent.mkdir(parents=True, exist_ok=True)
        self._lock = threading.Lock()
        self._connection = sqlite3.connect(path, timeout=10, isolation_level=None, check_same_thread=False)
        self._connection.execute("PRAGMA journal_mode = WAL")
        # FULL: what was answered is on disk, also when the machine dies and not only the process.
        self._connection.execute("PRAGMA synchronous = FULL")
        self._connection.executescript(SCHEMA)

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Commits at the end of the block, takes back everything when the block raises."""
        with self._lock:
            # IMMEDIATE: the look-up of a key and the write that follows it see no other writer between them,
            # not even another process that serves the same file.
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            yield self._connection

    def close(self) -> None:
        with self._lock:
            self._connection.close()
