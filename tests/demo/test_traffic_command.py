import os
import signal
import subprocess
import sys

import pytest

from demo.agents.refund_desk import refund_desk
from demo.management.commands.demo import Command
from demo.traffic import UNFINISHED_AT_MOST
from runs.models import Run
from tests.rig.ledger import ROOT, wait_until


def demo(dsn: str, *words: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "DATABASE_URL": dsn}
    return subprocess.Popen([sys.executable, "manage.py", "demo", *words], cwd=ROOT, env=environment, text=True)


def test_it_starts_as_many_runs_as_it_was_told(dsn: str) -> None:
    with demo(dsn, "--every", "0.01", "--count", "3") as process:
        assert process.wait(60) == 0
    assert Run.objects.filter(agent=refund_desk.name, status="queued").count() == 3


def test_it_leaves_at_once_on_sigterm(dsn: str) -> None:
    with demo(dsn, "--every", "600") as process:
        wait_until(Run.objects.filter(agent=refund_desk.name).exists, "the first run is started", within=60)
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0


@pytest.mark.django_db
def test_it_waits_while_too_many_are_unfinished() -> None:
    command = Command()
    started = [command.start_one() for _ in range(UNFINISHED_AT_MOST + 2)]
    assert started == [True] * UNFINISHED_AT_MOST + [False] * 2
