"""What really happened: one row an effect, one remembered answer a key."""

import json
import sqlite3
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from demo.payments.actions import Action
from demo.payments.storage import Storage


class KeyConflict(Exception):
    """This key was used before with other arguments."""


@dataclass(frozen=True, slots=True)
class Outcome:
    result: dict[str, Any]
    replayed: bool


class Ledger:
    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def act(self, action: Action, args: dict[str, Any], *, key: str | None, reference: str | None) -> Outcome:
        """The effect, once a key where the action de-duplicates. Raises KeyConflict, or Refused.

        What is remembered is answered before anything is checked: a hold that was booked in time stays booked.

        A `reference` only names the effect in the ledger; nothing is remembered under it.
        """
        wanted = _canonical(args)
        with self._storage.transaction() as db:
            if key is not None and action.deduplicates:
                known = db.execute("SELECT action, args, result FROM answer WHERE key = ?", (key,)).fetchone()
                if known is not None:
                    if known[:2] != (action.name, wanted):
                        raise KeyConflict
                    db.execute("UPDATE answer SET replays = replays + 1 WHERE key = ?", (key,))
                    return Outcome(json.loads(known[2]), replayed=True)
            action.check(args, lambda number: _earlier(db, number))
            # The effect and what we shall say of it are one transaction: neither exists without the other.
            at = datetime.now(UTC).isoformat()
            effect = db.execute(
                "INSERT INTO effect (key, action, args, at) VALUES (?, ?, ?, ?) RETURNING id",
                (key if key is not None else reference, action.name, wanted, at),
            ).fetchone()[0]
            result = action.result(effect, args, at)
            if key is not None:
                db.execute(
                    "INSERT INTO answer (key, action, args, result) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
                    (key, action.name, wanted, json.dumps(result)),
                )
            return Outcome(result, replayed=False)

    def answer_of(self, key: str) -> dict[str, Any] | None:
        """What was answered first under this key."""
        with self._storage.reading() as db:
            row = db.execute("SELECT result FROM answer WHERE key = ?", (key,)).fetchone()
        return None if row is None else json.loads(row[0])

    def effects(self, *, key: str | None, after: int, limit: int) -> list[dict[str, Any]]:
        """Effects in the order they happened, those after the effect with id `after`."""
        # Two statements rather than "? IS NULL OR key = ?", which would keep SQLite from using the index.
        where, arguments = ("", ()) if key is None else (" AND key = ?", (key,))
        with self._storage.reading() as db:
            rows = db.execute(
                f"SELECT * FROM effect WHERE id > ?{where} ORDER BY id LIMIT ?", (after, *arguments, limit)
            ).fetchall()
        return [_effect(row) for row in rows]

    def latest_effects(self, limit: int) -> list[dict[str, Any]]:
        with self._storage.reading() as db:
            rows = db.execute("SELECT * FROM effect ORDER BY id DESC LIMIT ?", (limit,)).fetchall()
        return [_effect(row) for row in rows]

    def refunds_of(self, order_id: str) -> list[dict[str, Any]]:
        """Refunds of one order in the order they happened."""
        with self._storage.reading() as db:
            rows = db.execute(
                "SELECT * FROM effect WHERE action = 'refund' AND json_extract(args, '$.order_id') = ?"
                " ORDER BY id LIMIT 50",
                (order_id,),
            ).fetchall()
        return [_effect(row) for row in rows]

    def totals(self, key: str | None) -> tuple[int, int]:
        """Effects that acted, and requests answered again from memory."""
        where, arguments = ("", ()) if key is None else (" WHERE key = ?", (key,))
        with self._storage.reading() as db:
            acted = db.execute(f"SELECT count(*) FROM effect{where}", arguments).fetchone()[0]
            again = db.execute(f"SELECT coalesce(sum(replays), 0) FROM answer{where}", arguments).fetchone()[0]
        return acted, again

    def count(self, name: str) -> int:
        """Adds one to a named counter (tests count model requests and reads with it)."""
        with self._storage.transaction() as db:
            row = db.execute(
                "INSERT INTO counter VALUES (?, 1) ON CONFLICT (name) DO UPDATE SET count = count + 1 RETURNING count",
                (name,),
            ).fetchone()
        return int(row[0])

    def counted(self, name: str) -> int:
        with self._storage.reading() as db:
            row = db.execute("SELECT count FROM counter WHERE name = ?", (name,)).fetchone()
        return 0 if row is None else int(row[0])


def _earlier(db: sqlite3.Connection, number: int) -> dict[str, Any] | None:
    row = db.execute("SELECT * FROM effect WHERE id = ?", (number,)).fetchone()
    return None if row is None else _effect(row)


def _effect(row: tuple[int, str | None, str, str, str]) -> dict[str, Any]:
    effect, key, action, args, at = row
    return {"id": effect, "key": key, "action": action, "args": json.loads(args), "at": at, "count": 1}


def _canonical(args: dict[str, Any]) -> str:
    return json.dumps(args, sort_keys=True, separators=(",", ":"))
