"""`once`: makes a service of your own `keyed`. The key and the answer are remembered in the transaction that acts."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import psycopg
from django.db import transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from journal.encoding import canonical, decode, encode, problems
from runs.errors import RunsError
from runs.texts import is_writable

# Yours to create, in the database in which your work acts. Rows older than your callers' longest `key_ttl` may go.
ONCE_TABLE = """
CREATE TABLE IF NOT EXISTS holdfast_once (
    key         text PRIMARY KEY,
    digest      bytea NOT NULL,
    result      bytea,
    recorded_at timestamptz NOT NULL DEFAULT clock_timestamp()
)
"""
# Another transaction that holds the same key is waited for here: it commits (then nothing is inserted), or is gone.
REMEMBER = "INSERT INTO holdfast_once (key, digest) VALUES (%s, %s) ON CONFLICT (key) DO NOTHING"
KEEP = "UPDATE holdfast_once SET result = %s WHERE key = %s"
KNOWN = "SELECT digest, result FROM holdfast_once WHERE key = %s"

Database = psycopg.Connection[Any] | BaseDatabaseWrapper


class KeyReused(RunsError):
    """This key was used before with other arguments: nothing was done."""


def once(connection: Database, key: str, work: Callable[[], Any], *, args: Any = None) -> Any:
    """`work()` in a transaction that also remembers `key`; its result. For a known key the remembered result, no work.

    `connection`: psycopg's or Django's, on which `work` acts too: inside the caller's transaction if one is open, else
    in one of its own, committed before this returns. `args`: what the key stands for (JSON values). What `work` raises
    undoes all, and the key is free again. Raises KeyReused (answer 409), ValueError for a key that is none and for a
    result that cannot be kept.
    """
    if not isinstance(key, str) or not key or not is_writable(key):
        raise ValueError(f"once: a key is a text that is not empty, like ctx.key, not {key!r:.60}")
    digest = hashlib.sha256(canonical(args)).digest()
    with _transaction(connection), connection.cursor() as cursor:
        cursor.execute(REMEMBER, (key, digest))
        if cursor.rowcount == 0:
            cursor.execute(KNOWN, (key,))
            known = cursor.fetchone()
            if known is None or bytes(known[0]) != digest:
                raise KeyReused(f"({key})")
            return decode(bytes(known[1]))
        result = work()
        if lost := problems(result, "result"):
            raise ValueError(f"once: {lost[0]} cannot be kept: return JSON values, dates, decimals or bytes")
        kept = encode(result)
        cursor.execute(KEEP, (kept, key))
        return decode(kept)


def known(connection: Database, key: str) -> tuple[bool, Any]:
    """Whether work under this key was committed, and its result: what a probe asks. Waits for nobody."""
    with connection.cursor() as cursor:
        cursor.execute(KNOWN, (key,))
        row = cursor.fetchone()
    return (False, None) if row is None else (True, decode(bytes(row[1])))


def _transaction(connection: Database) -> AbstractContextManager[Any]:
    """A savepoint where a transaction is open already."""
    if isinstance(connection, psycopg.Connection):
        return connection.transaction()
    return transaction.atomic(using=connection.alias)
