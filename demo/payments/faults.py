"""Faults on order: what the service does wrong, for whom, and how many times."""

import json
from dataclasses import asdict, dataclass
from typing import Any, Self

from demo.payments.actions import ACTIONS
from demo.payments.storage import Storage

# delay: wait, then act and answer.        hang: act, then cut the connection after `seconds` without an answer.
# late: act, answer after `seconds`.       fail: 500, not acting.              reject: 422, not acting.
# rate_limit: 429 with Retry-After.        drop: act, then cut the connection. payload: act, answer something else.
KINDS = ("delay", "hang", "late", "fail", "reject", "rate_limit", "drop", "payload")
LOOKUPS = ("order", "offers", "books", "status")
EVERY_ACTION = "*"
LARGEST_PAYLOAD = 512 * 1024 * 1024


class BadFault(Exception):
    """A fault that cannot be ordered; the text says why."""


@dataclass(frozen=True, slots=True)
class Fault:
    """`times` None: until removed. `size` is in bytes, `body` any JSON value (a string is sent as it stands)."""

    action: str
    fault: str
    key: str | None = None
    seconds: float = 3600.0
    times: int | None = None
    retry_after: float = 1
    size: int = 0
    body: Any = None

    @classmethod
    def parse(cls, wanted: Any) -> Self:
        """Raises BadFault."""
        if not isinstance(wanted, dict):
            raise BadFault("A fault is a JSON object.")
        if unknown := set(wanted) - set(cls.__dataclass_fields__):
            raise BadFault(f"Unknown: {', '.join(sorted(unknown))}.")
        try:
            fault = cls(**{"action": EVERY_ACTION, **wanted})
            fault._check()
        except TypeError as error:
            raise BadFault(str(error)) from None
        return fault

    def _check(self) -> None:
        if self.fault not in KINDS:
            raise BadFault(f"`fault` is one of {', '.join(KINDS)}.")
        if self.action not in (EVERY_ACTION, *LOOKUPS, *ACTIONS):
            raise BadFault(f"`action` is one of {', '.join((EVERY_ACTION, *ACTIONS, *LOOKUPS))}.")
        if self.key is not None and not isinstance(self.key, str):
            raise BadFault("`key` is a text.")
        if self.times is not None and (type(self.times) is not int or self.times < 1):
            raise BadFault("`times` is a whole number from 1.")
        if self.seconds < 0 or self.retry_after < 0 or not 0 <= self.size <= LARGEST_PAYLOAD:
            raise BadFault("`seconds`, `retry_after` and `size` cannot be negative, and `size` is at most 512 MiB.")

    def payload(self) -> bytes:
        if self.size:
            return json.dumps({"payload": "x" * self.size}).encode()
        return (self.body if isinstance(self.body, str) else json.dumps(self.body)).encode()


class Faults:
    """Ordered faults, kept in the service's file: a service that was killed comes back with them."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def order(self, fault: Fault) -> int:
        with self._storage.transaction() as db:
            row = db.execute(
                "INSERT INTO fault (action, key, remaining, spec) VALUES (?, ?, ?, ?) RETURNING id",
                (fault.action, fault.key, fault.times, json.dumps(asdict(fault))),
            ).fetchone()
        return int(row[0])

    def take(self, action: str, key: str | None) -> Fault | None:
        """The oldest fault for this request, counted down. `*` means every action, look-ups only when named."""
        everyone = action if action in LOOKUPS else EVERY_ACTION
        with self._storage.reading() as db:
            if db.execute("SELECT 1 FROM fault LIMIT 1").fetchone() is None:
                return None
        with self._storage.transaction() as db:
            row = db.execute(
                "SELECT id, spec FROM fault WHERE action IN (?, ?) AND (key IS NULL OR key = ?) ORDER BY id LIMIT 1",
                (action, everyone, key),
            ).fetchone()
            if row is None:
                return None
            db.execute("UPDATE fault SET remaining = remaining - 1 WHERE id = ?", (row[0],))
            db.execute("DELETE FROM fault WHERE id = ? AND remaining <= 0", (row[0],))
        return Fault(**json.loads(row[1]))

    def active(self) -> list[dict[str, Any]]:
        with self._storage.reading() as db:
            rows = db.execute("SELECT id, remaining, spec FROM fault ORDER BY id").fetchall()
        return [{"id": fault, **json.loads(spec), "remaining": remaining} for fault, remaining, spec in rows]

    def clear(self) -> int:
        with self._storage.transaction() as db:
            return db.execute("DELETE FROM fault").rowcount
