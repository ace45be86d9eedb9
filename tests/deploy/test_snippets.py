"""docs/deploy: each file is read as its tool reads it, and its commands are run against real workers.

What a tool does at a stop is played: it runs the command before the stop to its end, sends SIGTERM to the process it
started, and SIGKILL to all that is left when the time is over.
"""

from __future__ import annotations

import configparser
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from recovery.drains import order_drain
from recovery.models import Drain
from runs.models import Run, WorkerSession
from runs.queries import entries_of
from tests.crash.proof import assert_done_once
from tests.rig.crew import start
from tests.rig.fleet import Fleet
from tests.rig.ledger import ROOT, Ledger

FOLDER = ROOT / "docs" / "deploy"
NAME = "w-of-the-snippet"


@dataclass(frozen=True)
class Snippet:
    """How a tool starts and stops a worker. Times in seconds."""

    begin: Sequence[str]
    before_stop: Sequence[str]
    environment: Mapping[str, str]
    patience: float  # from the begin of the stop, or of its SIGTERM, to SIGKILL
    all_at_once: bool = False  # whether the command before the stop has a patience of its own

    @property
    def timeout(self) -> float:
        """Of the drain."""
        (found,) = re.findall(r"--timeout (\d+)", " ".join(self.before_stop))
        return float(found)

    @property
    def grace(self) -> float:
        return float(self.environment["HOLDFAST_GRACE_SECONDS"])


def kubernetes() -> Snippet:
    worker, sweep = yaml.safe_load_all((FOLDER / "kubernetes.yaml").read_text())
    for one in (worker, sweep):
        assert one["spec"]["selector"]["matchLabels"] == one["spec"]["template"]["metadata"]["labels"]
    pod = worker["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    environment = {one["name"]: one.get("value", NAME) for one in container["env"]}
    stop = container["lifecycle"]["preStop"]["exec"]["command"]
    return Snippet(container["command"], stop, environment, pod["terminationGracePeriodSeconds"])


def compose() -> Snippet:
    worker = yaml.safe_load((FOLDER / "compose.yaml").read_text())["services"]["worker"]
    assert worker["stop_signal"] == "SIGTERM"
    environment = worker["environment"] | {"WORKER": NAME}
    (hook,) = worker["pre_stop"]
    return Snippet(unescaped(worker["command"]), unescaped(hook["command"]), environment, seconds(worker))


def unescaped(words: Sequence[str]) -> list[str]:
    return [word.replace("$$", "$") for word in words]


def seconds(service: Mapping[str, Any]) -> float:
    period: str = service["stop_grace_period"]
    assert period.endswith("s")
    return float(period.removesuffix("s"))


def systemd() -> Snippet:
    unit = configparser.RawConfigParser(strict=True)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read_string((FOLDER / "holdfast-worker.service").read_text())
    service = unit["Service"]
    assert (service["KillSignal"], service["KillMode"]) == ("SIGTERM", "mixed")
    environment = dict(one.split("=", 1) for one in shlex.split(service["Environment"])) | {"WORKER": NAME}
    begin, stop = (expanded(service[name].removeprefix("-"), environment) for name in ("ExecStart", "ExecStop"))
    return Snippet(begin, stop, environment, float(service["TimeoutStopSec"]), all_at_once=True)


def expanded(line: str, environment: Mapping[str, str]) -> list[str]:
    """As systemd does it: words first, then ${NAME} within them; no shell."""
    return [re.sub(r"\$\{(\w+)\}", lambda name: environment[name[1]], word) for word in shlex.split(line)]


SNIPPETS: dict[str, Callable[[], Snippet]] = {"kubernetes": kubernetes, "compose": compose, "systemd": systemd}
each = pytest.mark.parametrize("tool", SNIPPETS)


@each
def test_the_times_of_a_snippet_fit_together(tool: str) -> None:
    snippet = SNIPPETS[tool]()
    assert "--until-gone" in " ".join(snippet.before_stop) and "--wait" in " ".join(snippet.before_stop)
    if snippet.all_at_once:
        assert snippet.patience >= snippet.timeout + 10 and snippet.patience >= snippet.grace + 10
    else:
        assert snippet.patience >= snippet.timeout + snippet.grace + 10


class Tool:
    """Starts, and stops, what the snippet says, with shorter times."""

    def __init__(self, fleet: Fleet, snippet: Snippet, folder: Path, timeout: float, grace: float) -> None:
        self.snippet, self.timeout, self.grace = snippet, timeout, grace
        python = folder / "python"
        python.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n')
        python.chmod(0o755)
        self.environment = os.environ | fleet.environment | snippet.environment
        self.environment |= {"PATH": f"{folder}:{os.environ['PATH']}", "HOLDFAST_GRACE_SECONDS": f"{grace:g}"}
        self.log = folder / "log"
        self.process = self.call(snippet.begin)

    def call(self, words: Sequence[str]) -> subprocess.Popen[bytes]:
        said = [re.sub(r"--timeout \d+", f"--timeout {self.timeout:g}", word) for word in words]
        if "--timeout" in said:
            said[said.index("--timeout") + 1] = f"{self.timeout:g}"
        said = [word.replace("/srv/holdfast/.venv/bin/python", "python") for word in said]
        with open(self.log, "ab") as log:
            return subprocess.Popen(
                said, cwd=ROOT, env=self.environment, stdout=log, stderr=log, start_new_session=True
            )

    def stop(self) -> float:
        """How many seconds it took. Whatever is left at the end of its time is killed."""
        began = time.monotonic()
        assert self.call(self.snippet.before_stop).wait(self.timeout + 60) in (0, 3)
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(self.grace + 30)
        except subprocess.TimeoutExpired:
            self.kill()
        return time.monotonic() - began

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(30)


@pytest.fixture
def begin(fleet: Fleet, tmp_path: Path) -> Iterator[Callable[..., Tool]]:
    tools: list[Tool] = []

    def started(tool: str, timeout: float, grace: float) -> Tool:
        tools.append(made := Tool(fleet, SNIPPETS[tool](), tmp_path, timeout, grace))
        fleet.until(lambda: WorkerSession.objects.filter(name=NAME, ended_at=None).exists(), "the worker is there")
        return made

    yield started
    for tool in tools:
        tool.kill()


@each
@pytest.mark.slow
def test_a_worker_stops_empty_and_nothing_is_in_doubt(
    tool: str, fleet: Fleet, ledger: Ledger, begin: Callable[..., Tool]
) -> None:
    stopped = begin(tool, timeout=60, grace=5)
    fleet.sweeper()
    run_id = start("slow", {"seconds": 3})
    fleet.until(lambda: ledger.calls(f"{run_id}:1"), "the call is under way")
    stopped.stop()
    assert stopped.process.returncode == 0, "it left by itself"
    run = Run.objects.get(id=run_id)
    assert (run.status, run.crashes, run.intents) != ("running", 1, []) and run.session_id is None
    assert [e.kind for e in entries_of(run_id)].count("OBS") == 1, "its call was waited for"
    fleet.until(lambda: Drain.objects.get().gate.lifted_at is not None, "its gate is lifted")
    assert Drain.objects.get().phase == "done"
    fleet.worker()
    fleet.until(lambda: Run.objects.get(id=run_id).status == "done", "it goes on elsewhere")
    assert_done_once(ledger, fleet.rests(run_id))


@pytest.mark.slow
def test_a_worker_that_an_operator_has_drained_before_is_waited_for_too(
    fleet: Fleet, ledger: Ledger, begin: Callable[..., Tool]
) -> None:
    stopped = begin("systemd", timeout=60, grace=1)
    fleet.sweeper()
    run_id = start("slow", {"seconds": 8})
    fleet.until(lambda: ledger.calls(f"{run_id}:1"), "the call is under way")
    order_drain(scope=f"worker:{NAME}", timeout=1, reason="new kernel", actor="olga")
    stopped.stop()
    assert stopped.process.returncode == 0, "it left by itself"
    assert [e.kind for e in entries_of(run_id)].count("OBS") == 1, "its call was waited for"
    fleet.until(lambda: Drain.objects.get().gate.lifted_at is not None, "its gate is lifted")


@each
@pytest.mark.slow
def test_what_outlasts_every_patience_is_in_doubt_as_it_was_told(
    tool: str, fleet: Fleet, ledger: Ledger, begin: Callable[..., Tool]
) -> None:
    stopped = begin(tool, timeout=2, grace=2)
    fleet.sweeper()
    run_id = start("slow", {"seconds": 100})
    fleet.until(lambda: ledger.calls(f"{run_id}:1"), "the call is under way")
    stopped.stop()
    drain = Drain.objects.get()
    assert drain.phase == "handed_over"
    assert [(one["run"], one["key"]) for one in drain.report["runs"]] == [(str(run_id), f"{run_id}:1")]
    fleet.worker()
    fleet.until(lambda: Run.objects.get(id=run_id).status == "done", "another worker finds out")
    run = fleet.rests(run_id)
    assert run.crashes == 0, "a drain is no crash"
    assert_done_once(ledger, run)
