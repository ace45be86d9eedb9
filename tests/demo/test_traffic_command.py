import os
import signal
import subprocess
import sys

import pytest

from demo.agents.refund_desk import refund_desk
from demo.management.commands.demo import start_one
from demo.traffic import Part, programme
from runs.models import Run
from tests.rig.ledger import ROOT, wait_until


@pytest.fixture(autouse=True)
def nobody_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """No service: an `up` that runs beside the tests is left alone."""
    monkeypatch.setenv("HOLDFAST_PAYMENTS_URL", "http://127.0.0.1:9")


def demo(dsn: str, *words: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "DATABASE_URL": dsn}
    return subprocess.Popen([sys.executable, "manage.py", "demo", *words], cwd=ROOT, env=environment, text=True)


def test_it_starts_as_many_runs_as_it_was_told(dsn: str) -> None:
    with demo(dsn, "--every", "0.01", "--count", "3") as process:
        assert process.wait(60) == 0
    assert Run.objects.filter(agent=refund_desk.name, status="queued").count() == 3


@pytest.mark.slow
def test_it_starts_some_of_each(dsn: str) -> None:
    with demo(dsn, "--every", "600", "--count", "4") as process:
        assert process.wait(90) == 0
    assert set(Run.objects.values_list("agent", flat=True)) == {part.agent for part in programme(600)}


def test_it_leaves_at_once_on_sigterm(dsn: str) -> None:
    with demo(dsn, "--every", "600") as process:
        wait_until(Run.objects.filter(agent=refund_desk.name).exists, "the first run is started", within=60)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0


@pytest.mark.django_db
@pytest.mark.parametrize("part", programme(4), ids=lambda part: part.agent)
def test_it_waits_while_too_many_are_unfinished(part: Part) -> None:
    started = [start_one(part) for _ in range(part.unfinished_at_most + 2)]
    assert started == [True] * part.unfinished_at_most + [False] * 2
