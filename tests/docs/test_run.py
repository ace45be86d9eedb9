"""Every command of the manual, run beside an installation that was started as the README says."""

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from config.environment import ROOT, embedded_database
from config.installation import free_port
from tests.config.rig import soon
from tests.docs.manual import Block, blocks
from tests.docs.modules import module_name, source_of
from tests.docs.shell import Installation, start_up, stop

pytestmark = pytest.mark.slow

OWN = ("waiting.md", "releases.md", "model-agents.md", "bring-your-agent.md")  # pages whose commands start their agents
# Commands that go on until they are stopped, or that are what runs this: who proves them.
UP = {"make up", *(f"HOLDFAST_AGENTS={name} make up" for name in ("my_agents", "my_clerk", "my_desk"))}  # the fixture
TESTS = {"make test"}
SERVED = re.compile(r"python manage\.py (worker|sweep)\b")
WEB = re.compile(r"python -m granian\b")


def is_finite(block: Block) -> bool:
    text = block.text.strip()
    return text not in UP | TESTS and not SERVED.match(text) and not WEB.match(text)


def started_by(pattern: re.Pattern[str]) -> list[Block]:
    return [block for block in blocks("sh") if pattern.match(block.text)]


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory, nursery) -> Iterator[Installation]:  # type: ignore[no-untyped-def]
    """It serves the agents of README.md, and of the pages whose commands start theirs."""
    agents = tmp_path_factory.mktemp("agents")
    [first] = [block for block in blocks("python") if block.marks.get("file") == "my_agents.py"]
    (agents / "my_agents.py").write_text(first.text)
    for page in OWN:
        (agents / f"{module_name(page)}.py").write_text(source_of(page))
    running = start_up(tmp_path_factory.mktemp("up"), agents, ["my_agents", *map(module_name, OWN)], nursery)
    # Until its workers have announced what they serve.
    soon(lambda: running.manage(["release", "needs", "greeter@2"])[0] == 1)
    yield running
    stop(running)


def test_the_first_agent_does_what_the_readme_says(up: Installation) -> None:
    code, said = up.manage(["start", "notes", "--input", '{"name": "Ada"}', "--wait"])
    assert (code, said.splitlines()[-1]) == (0, '"three notes"'), said


def test_killed_in_the_middle_it_leaves_three_notes(up: Installation) -> None:
    [block] = [block for block in blocks("sh") if "kill -9" in block.text]
    code, said = up.type(block)
    assert code == 0, said
    notes = [line for line in said.splitlines() if line.startswith("/tmp/note-")]
    assert len(notes) == 3 and "taken over" in said, said


@pytest.mark.parametrize("block", [block for block in blocks("sh") if is_finite(block)], ids=str)
def test_it_runs(up: Installation, block: Block) -> None:
    wanted = int(block.marks.get("exit", 0))
    if "again" in block.marks:
        soon(lambda: up.type(block)[0] == wanted, float(block.marks["again"]))
        return
    code, said = up.type(block)
    assert code == wanted, f"{block.text}\n{said}"


@pytest.mark.parametrize("block", blocks("sql"), ids=str)
def test_the_database_understands_it(up: Installation, block: Block) -> None:
    with psycopg.connect(make_conninfo("", **embedded_database(up.data))) as connection:
        connection.execute(block.text.encode())


@pytest.mark.parametrize("block", started_by(SERVED), ids=str)
def test_it_serves_until_it_is_stopped(up: Installation, block: Block) -> None:
    pid, log = up.serve(block.text.split()[2:])
    soon(lambda: handles(signal.SIGTERM, pid))
    os.kill(pid, signal.SIGTERM)
    assert soon(lambda: pid in up.nursery.codes) and up.nursery.codes[pid] == 0, log.read_text()


def handles(which: signal.Signals, pid: int) -> bool:
    """Whether the process has come so far that it does something of its own when the signal comes."""
    caught = re.search(r"^SigCgt:\s+(\w+)", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    return caught is not None and bool(int(caught[1], 16) >> (which - 1) & 1)


@pytest.mark.parametrize("block", started_by(WEB), ids=str)
def test_the_web_process_answers(up: Installation, block: Block) -> None:
    port = free_port(0)
    words = ["sh", "-c", "exec " + block.text.replace("8080", str(port))]
    web = subprocess.Popen(words, env=up.environment, cwd=ROOT, start_new_session=True, stderr=subprocess.DEVNULL)
    try:
        soon(lambda: up.shell(f"curl -sf http://127.0.0.1:{port}/readyz")[0] == 0)
    finally:
        os.killpg(web.pid, signal.SIGTERM)
        web.wait(60)


def test_make_knows_the_commands() -> None:
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert {command.split()[-1] for command in UP | TESTS} <= targets
