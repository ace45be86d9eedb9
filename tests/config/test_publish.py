"""A message is a hint: a broker that is away or stands still holds nobody up for long."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from kombu.exceptions import OperationalError

from config.celery import app
from config.embedded import valkey
from tests.conftest import forget_broker_connections

PATIENCE = 15  # seconds: it takes 2 on a quiet machine, and minutes if nobody had set the timeouts


@pytest.fixture
def own_broker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    server = valkey.start(tmp_path)
    monkeypatch.setattr(app.conf, "broker_url", f"redis+socket://{valkey.socket_path(tmp_path)}")
    forget_broker_connections()
    yield server.pid
    server.kill()
    server.wait()
    forget_broker_connections()


def seconds_to_fail() -> float:
    began = time.monotonic()
    with pytest.raises((OperationalError, OSError)):
        app.send_task("nothing", queue="somewhere")
    return time.monotonic() - began


def test_publishing_to_a_broker_that_died_fails_soon(own_broker: int) -> None:
    app.send_task("nothing", queue="somewhere")
    os.kill(own_broker, signal.SIGKILL)
    assert seconds_to_fail() < PATIENCE


def test_publishing_to_a_broker_that_was_never_there_fails_soon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app.conf, "broker_url", f"redis+socket://{tmp_path}/none.sock")
    forget_broker_connections()
    assert seconds_to_fail() < PATIENCE


def test_publishing_to_a_broker_that_stands_still_fails_soon(own_broker: int) -> None:
    app.send_task("nothing", queue="somewhere")
    os.kill(own_broker, signal.SIGSTOP)
    assert seconds_to_fail() < PATIENCE


def test_publishing_works_again_when_the_broker_is_back(own_broker: int) -> None:
    os.kill(own_broker, signal.SIGSTOP)
    seconds_to_fail()
    os.kill(own_broker, signal.SIGCONT)
    app.send_task("nothing", queue="somewhere")
