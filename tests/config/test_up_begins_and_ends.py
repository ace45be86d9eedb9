"""`manage.py up` begins with clear words or not at all, and leaves nothing behind."""

import os
import signal
import socket
import subprocess
from pathlib import Path

import pytest

from tests.config.rig import Up, command, processes_of, soon

pytestmark = pytest.mark.slow


def test_a_taken_port_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        words = ("up", "--data", str(tmp_path / "var"), "--port", port)
        refused = subprocess.run(**command(*words), capture_output=True, timeout=120)
    assert refused.returncode == 1 and f"Port {port} is taken" in refused.stderr and "Traceback" not in refused.stderr


def test_ctrl_c_ends_everything_and_up_starts_again_on_the_same_data(tmp_path: Path) -> None:
    with Up(tmp_path / "var", variables={"HOLDFAST_DEMO_MODEL": "claude"}) as first:
        soon(lambda: "preparing" in first.printed())
        assert "HOLDFAST_DEMO_MODEL='claude': name the provider and its model, as anthropic:" in first.printed()
        assert "asks its scripted model" in first.printed()
        password = first.wait_until_ready().printed().split("password ")[1].split()[0]
        os.kill(first.process.pid, signal.SIGINT)
        assert first.process.wait(90) == 0, first.printed()
    assert not processes_of(first.data)
    with Up(tmp_path / "var") as second:
        assert f"password {password}" in second.wait_until_ready().printed()


def test_children_do_not_outlive_a_killed_up(tmp_path: Path) -> None:
    with Up(tmp_path / "var", "--no-demo", variables={"HOLDFAST_AGENTS": "demo.agents"}) as up:
        up.wait_until_ready()
        assert up.pid_of("manage.py", "worker")
        assert not up.pid_of("manage.py", "payments") and not up.pid_of("demo.providers")
        os.kill(up.process.pid, signal.SIGKILL)
        up.process.wait()
        soon(lambda: not processes_of(up.data))
