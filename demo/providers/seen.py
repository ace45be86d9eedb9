"""What was asked, in order: what tests and people read."""

import hashlib
import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

from demo.providers.turns import Usage

SECRETS = frozenset({"authorization", "x-api-key", "api-key", "cookie", "proxy-authorization"})


@dataclass(slots=True)
class Seen:
    """One request. `turn`: which answer it was for (None: refused before that was known).

    `status` None: no answer has begun. `pieces`: sent of it (a body is one). `answered`: it was sent whole, and is no
    fault's. `usage`: what it counts, sent or not. `gone`: the caller hung up before the end.
    """

    number: int
    dialect: str
    model: str
    path: str
    body: str
    digest: str
    headers: Mapping[str, str]
    at: str
    stream: bool
    request_id: str
    turn: int | None = None
    status: int | None = None
    pieces: int = 0
    fault: str | None = None
    usage: Usage | None = None
    answered: bool = False
    gone: bool = False

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass
class Record:
    """The latest `keep` requests. For many threads."""

    keep: int = 1000
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _count: int = 0

    def __post_init__(self) -> None:
        self._seen: deque[Seen] = deque(maxlen=self.keep)

    def note(
        self, *, dialect: str, model: str, path: str, raw: bytes, headers: Mapping[str, str], stream: bool
    ) -> Seen:
        with self._lock:
            self._count += 1
            seen = Seen(
                number=self._count,
                dialect=dialect,
                model=model,
                path=path,
                body=raw.decode(errors="replace"),
                digest=hashlib.sha256(raw).hexdigest(),
                headers={name: value for name, value in headers.items() if name not in SECRETS},
                at=datetime.now(UTC).isoformat(),
                stream=stream,
                request_id=f"req_{self._count:06}",
            )
            self._seen.append(seen)
        return seen

    def of(self, model: str | None = None) -> list[Seen]:
        with self._lock:
            return [seen for seen in self._seen if model in (None, seen.model)]

    def clear(self) -> int:
        """Numbers go on, so that no request id is given twice."""
        with self._lock:
            count = len(self._seen)
            self._seen.clear()
        return count
