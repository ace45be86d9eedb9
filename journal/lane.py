"""One connection of the committer: sends a batch of appends and brings back an answer or an error for each."""

import os
import socket
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Protocol
from uuid import UUID

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.types.numeric import Int8BinaryDumper

from journal.arrays import array, register_arrays
from journal.entries import Answer, Draft, seal
from journal.errors import CommitterClosed

# In the order of the function's parameters. In arrays 0 stands for a NULL step or settles.
_OF_APPENDS = {"runs": "uuid", "epochs": "int8", "numbers": "int8", "seens": "int8"}
_OF_ENTRIES = {
    "of": "int4", "decision": "bool", "kind": "text", "v": "int4", "step": "int4", "settles": "int4", "actor": "text",
    "salt": "bytea", "digest": "bytea", "body": "bytea",
}  # fmt: skip
_GIVEN = ", ".join(f"%({name})b" for name in (*_OF_APPENDS, *_OF_ENTRIES))
APPEND = f"SELECT * FROM journal_append_v1({_GIVEN})"
APPEND_ONE = f"SELECT * FROM journal_append_one_v1({_GIVEN})"
HOLD = "SELECT 1 FROM journal_head WHERE run_id = %(run)b FOR NO KEY UPDATE"

# A plan made while journal_head is small scans it, and a generic plan keeps that for ever: scans by index only.
_OPTIONS = (
    "-c synchronous_commit=on -c TimeZone=UTC -c jit=off -c plan_cache_mode=force_generic_plan -c enable_seqscan=off"
    " -c enable_mergejoin=off -c lock_timeout={} -c idle_in_transaction_session_timeout=60000"
)
# A server that vanished without a word is given up after some seconds, not after the kernel's quarter of an hour.
_DEFAULTS: dict[str, Any] = {
    "application_name": "holdfast committer",
    "connect_timeout": 5,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 15_000,
}
_NOT_NOW = (
    psycopg.errors.LockNotAvailable,
    psycopg.errors.DeadlockDetected,
    psycopg.errors.SerializationFailure,
    psycopg.errors.QueryCanceled,
)
_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 1.0  # seconds between two tries to connect


@dataclass(slots=True)
class Append:
    """What a run's holder wants appended. `number` rises by each append of an epoch; `seen` is the last seq it folded.

    `then` is for the projection, which follows the append in its transaction and only if nothing of it was refused.
    """

    run_id: UUID
    epoch: int
    number: int
    seen: int
    entries: list[Draft]
    then: Any = None


class Projection(Protocol):
    """Statements sent in the append's transaction, after it. Each must join journal_head (epoch, last_append_no, NOT
    append_refused) to follow written appends only: it is sent before the answers are known."""

    def statements(self, appends: Sequence[Append]) -> Sequence[tuple[str, Mapping[str, Any]]]:
        """For the appends that have a `then`, each with its arguments."""


class Ticket:
    """An append on its way, its bodies encoded."""

    __slots__ = ("answer", "append", "busy_since", "error", "future", "gate", "on_its_way", "rows")

    def __init__(self, append: Append, future: Future[Answer] | None = None) -> None:
        if not append.entries:
            raise ValueError("an append has at least one entry")
        self.append = append
        self.rows = [
            (e.decision, e.kind, e.v, e.step or 0, e.settles or 0, e.actor, *sealed)
            for e, sealed in zip(append.entries, seal(append.entries), strict=True)
        ]
        self.future = future
        self.answer: Answer | None = None
        self.error: BaseException | None = None
        self.busy_since = 0.0
        self.on_its_way = False
        self.gate = threading.Lock()  # what its caller waits at
        self.gate.acquire()


@dataclass(slots=True)
class Lane:
    """`lock_timeout` in ms. Used by one thread at a time; only `hang_up` may come from another."""

    dsn: str
    lock_timeout: int
    projection: Projection | None
    stopping: threading.Event
    conn: psycopg.Connection[Any] | None = field(default=None, init=False)

    def send(self, batch: Sequence[Ticket], hold: UUID | None = None) -> list[tuple[Ticket, Answer | Exception]]:
        """Halves the batch on an error until only the faulty append has it. Sends again after a lost connection: the
        same append number gets the same answer. Raises CommitterClosed when told to stop without an answer."""
        while True:
            conn = self._connection()
            try:
                found = {answer.run_id: answer for answer in self._call(conn, batch, hold)}
                return [(ticket, found[ticket.append.run_id]) for ticket in batch]
            except _NOT_NOW:
                conn.rollback()
                return [(ticket, Answer(ticket.append.run_id, "busy")) for ticket in batch]
            except Exception as error:
                if conn.closed:
                    continue
                conn.rollback()
                if len(batch) == 1:
                    return [(batch[0], error)]
                middle = len(batch) // 2
                return self.send(batch[:middle]) + self.send(batch[middle:])

    def connect(self) -> None:
        """Raises psycopg.OperationalError."""
        self.conn = self._connect()

    def hang_up(self) -> None:
        """Ends what another thread waits for on this connection."""
        if self.conn is None:
            return
        try:
            with socket.socket(fileno=os.dup(self.conn.fileno())) as line:
                line.shutdown(socket.SHUT_RDWR)
        except (OSError, psycopg.OperationalError):  # closed meanwhile
            pass

    def close(self) -> None:
        if self.conn is not None:
            self.conn.close()

    def _connection(self) -> psycopg.Connection[Any]:
        pause = _FIRST_PAUSE
        while self.conn is None or self.conn.closed:
            if self.stopping.is_set():
                raise CommitterClosed
            try:
                self.conn = self._connect()
            except psycopg.OperationalError:
                self.stopping.wait(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
        return self.conn

    def _connect(self) -> psycopg.Connection[Any]:
        given = conninfo_to_dict(self.dsn)
        options = f"{given.get('options') or ''} {_OPTIONS.format(self.lock_timeout)}"
        conninfo = make_conninfo("", **(_DEFAULTS | given | {"options": options}))
        conn = psycopg.connect(conninfo, autocommit=True)
        register_arrays(conn)
        conn.adapters.register_dumper(int, Int8BinaryDumper)  # else each width of int is another prepared statement
        return conn

    def _call(self, conn: psycopg.Connection[Any], batch: Sequence[Ticket], hold: UUID | None) -> list[Answer]:
        given = _columns(batch)
        append = APPEND_ONE if len(batch) == 1 else APPEND
        told = [t.append for t in batch if t.append.then is not None]
        follows = self.projection.statements(told) if self.projection is not None and told else ()
        if hold is None and not follows:
            return [Answer(*row) for row in conn.execute(append, given, prepare=True, binary=True)]
        # One round trip. conn.transaction() would add two, and the pipeline's implicit COMMIT breaks the connection
        # when it fails.
        with conn.pipeline():
            conn.execute("BEGIN", prepare=True)
            if hold is not None:
                conn.execute(HOLD, {"run": hold}, prepare=True)
            answers = conn.execute(append, given, prepare=True, binary=True)
            for statement, arguments in follows:
                conn.execute(statement, arguments, prepare=True)
            conn.execute("COMMIT", prepare=True)
        return [Answer(*row) for row in answers]


def _columns(batch: Sequence[Ticket]) -> dict[str, bytes]:
    appends = [(t.append.run_id, t.append.epoch, t.append.number, t.append.seen) for t in batch]
    entries = [(of, *row) for of, ticket in enumerate(batch, 1) for row in ticket.rows]
    columns = {}
    for names, rows in ((_OF_APPENDS, appends), (_OF_ENTRIES, entries)):
        for (name, kind), column in zip(names.items(), zip(*rows, strict=True), strict=True):
            columns[name] = array(kind, column)
    return columns
