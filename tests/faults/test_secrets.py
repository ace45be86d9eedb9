"""E28: a secret's value stands in no worker's log, traceback, message, or row; real worker processes."""

import io
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

import psycopg
import pytest
import redis

from runs.queries import entries_of
from runs.registry import agents, announce
from tests.rig.crew import start
from tests.rig.fleet import Fleet
from tests.runs.secretive import CARD, SECRET
from tests.runs.test_secret import EVERY_TABLE

PATTERN = r"\b4\d{15}\b"


@pytest.fixture
def fleet(fleet: Fleet, settings: Any) -> Fleet:
    settings.HOLDFAST_AGENTS = ("tests.runs.secretive",)
    settings.HOLDFAST_REDACT = PATTERN
    agents.cache_clear()
    announce()
    fleet.environment |= {
        "HOLDFAST_AGENTS": "tests.runs.secretive", "SECRET_KEY": settings.SECRET_KEY, "HOLDFAST_REDACT": PATTERN,
    }  # fmt: skip
    return fleet


def in_broker(url: str) -> bytes:
    """All that the broker holds right now."""
    broker = redis.Redis(unix_socket_path=urlsplit(url).path, db=0)
    dumped = io.BytesIO()
    for key in broker.scan_iter():
        dumped.write(key)
        match broker.type(key):
            case b"list":
                dumped.write(b"".join(broker.lrange(key, 0, -1)))
            case b"hash":
                dumped.write(repr(broker.hgetall(key)).encode())
            case b"string":
                dumped.write(broker.get(key) or b"")
    broker.close()
    return dumped.getvalue()


@pytest.mark.slow
def test_its_value_is_in_no_log_no_message_and_no_row(fleet: Fleet, embedded_broker: str) -> None:
    runs: list[UUID] = [start("charges", {"note": CARD}), start("hands-on", {"card": CARD})]
    runs += [start("breaks", how) for how in ("permanent", "transient", "unknown", "bug")]
    waiting = in_broker(embedded_broker)
    worker, _ = fleet.worker(), fleet.sweeper()
    for run_id in runs:
        fleet.rests(run_id)
    told = [str([entry.body for entry in entries_of(run_id)]) for run_id in runs]
    assert "used [secret]" in told[0] and "heard [secret]" in told[1] and "[secret] was refused" in told[2]
    for word in (SECRET, CARD):
        assert word.encode() not in waiting + in_broker(embedded_broker)
        assert word not in Path(worker.log).read_text(errors="replace")
        assert tables_with(fleet.dsn, word) == []
    assert "charging with [secret]" in worker.said()


def tables_with(dsn: str, word: str) -> list[str]:
    with psycopg.connect(dsn) as conn:
        tables = [name for (name,) in conn.execute(EVERY_TABLE).fetchall()]
        rows = {name: str(conn.execute(f'SELECT t::text FROM "{name}" t').fetchall()) for name in tables}  # type: ignore[arg-type]
    return [name for name, text in rows.items() if word in text or word.encode().hex() in text]
