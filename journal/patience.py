"""The web's connections give up on a database that is there and says nothing: a frozen disk, a stopped process.

Such a server obeys no timeout of its own, and its kernel goes on acknowledging what is sent: so the client counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import psycopg
from psycopg.abc import RV, PQGen
from psycopg.errors import _WaitTimeout as WaitTimeout

STATEMENT = 8.0  # seconds that a page waits for one statement
CONNECT = 3  # seconds
# A statement that its client gave up ends soon; none lasts longer than the longest patience.
SERVER = "-c client_connection_check_interval=2000 -c statement_timeout=60000"

_patience: ContextVar[float] = ContextVar("patience", default=STATEMENT)


class PatientConnection(psycopg.Connection[Any]):
    """Raises OperationalError, and is closed, when a statement was not answered in time."""

    def wait(self, gen: PQGen[RV], interval: float = 0.1, timeout: float | None = None) -> RV:
        if timeout is not None:
            return super().wait(gen, interval, timeout)
        try:
            return super().wait(gen, interval, _patience.get())
        except WaitTimeout:
            self.close()
            raise psycopg.OperationalError("the database did not answer in time") from None


@contextmanager
def patient(seconds: float) -> Iterator[None]:
    """For what is known to take long, and is worth the wait."""
    token = _patience.set(seconds)
    try:
        yield
    finally:
        _patience.reset(token)
