"""Reload in development: changed agents are served within seconds, and their runs go on under the new content."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from config.reload import SourceWatch
from runs import registry
from runs.agents import Agent
from runs.models import Release, Run
from runs.queries import entries_of
from runs.redefine import repin_all
from runs.registry import AgentsUnusable, agents, announce
from runs.sdk import Finish, RunView, Sleep, start
from tests.config.rig import Up, command, soon

AGENT = """
from runs.sdk import Call, WaitFor, flow, tool


@tool(effect="read")
def word(ctx, {parameter}) -> str:
    return "{word}"


@flow(name="moody", version="1", tools=[word])
def moody(run):
    yield WaitFor("go")
    return (yield Call(word))
"""


@pytest.fixture
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "watched_agents.py").write_text("one = 1\n")
    return tmp_path


def test_a_changed_a_new_and_a_removed_file_are_seen_once(sources: Path) -> None:
    watch = SourceWatch(["watched_agents", "nowhere.at_all"])
    assert watch.changed() == []
    (sources / "watched_agents.py").write_text("one = 11\n")
    (sources / "beside.py").write_text("")
    assert [path.name for path in watch.changed()] == ["beside.py", "watched_agents.py"]
    assert watch.changed() == []
    (sources / "beside.py").unlink()
    assert [path.name for path in watch.changed()] == ["beside.py"]


@pytest.fixture
def serve(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Serves one agent, under whatever content."""

    def serve(agent: Agent) -> None:
        monkeypatch.setattr("runs.registry.agents", lambda: {agent.release_id: agent})
        monkeypatch.setattr("runs.redefine.agents", lambda: {agent.release_id: agent})
        monkeypatch.setattr("runs.starting.agents", lambda: {agent.release_id: agent})
        announce()

    agents.cache_clear()
    registry._announced.clear()
    yield serve
    agents.cache_clear()


def moody(deadline: float) -> Agent:
    def decide(state: RunView) -> Any:
        return Finish() if state.now.year > 9000 else Sleep(60)

    return Agent("moody", "1", (), decide, deadline=deadline)


@pytest.mark.django_db(transaction=True)
def test_other_content_under_a_known_version_is_allowed_in_development_only(serve: Any, settings: Any) -> None:
    serve(moody(10_000))
    run_id = start("moody")
    with pytest.raises(AgentsUnusable, match=r"give the changed agent a new version.*--allow-redefine"):
        serve(moody(20_000))
    settings.HOLDFAST_ALLOW_REDEFINE = True
    serve(changed := moody(20_000))
    assert Release.objects.filter(agent="moody", version="1").count() == 2
    settings.HOLDFAST_ALLOW_REDEFINE = False
    serve(changed)  # a worker has recorded it: a shell that only starts runs needs no leave of its own
    with pytest.raises(AgentsUnusable, match="HOLDFAST_ALLOW_REDEFINE=1"):
        serve(moody(30_000))
    serve(changed)
    assert (repin_all(), repin_all()) == (1, 0)
    run = Run.objects.get(id=run_id)
    assert (run.release_id, run.status) == (changed.release_id, "queued")
    pin = entries_of(run_id)[-1]
    assert (pin.kind, pin.actor, pin.body["release"]) == ("PIN", "system", changed.release_id)
    settings.HOLDFAST_ALLOW_REDEFINE = False  # a second shell, which only starts runs
    registry._announced.clear()
    assert Run.objects.get(id=start("moody")).release_id == changed.release_id


@pytest.mark.django_db(transaction=True)
def test_an_agent_that_was_changed_keeps_no_other_from_being_started(
    serve: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve(moody(10_000))
    other, changed = Agent("calm", "1", (), lambda state: Finish()), moody(20_000)
    both = {agent.release_id: agent for agent in (changed, other)}
    for module in ("registry", "starting"):
        monkeypatch.setattr(f"runs.{module}.agents", lambda: both)
    start("calm")
    with pytest.raises(AgentsUnusable, match="moody@1 is known with other content"):
        start("moody")


@pytest.mark.slow
def test_a_changed_agent_is_served_and_its_waiting_runs_go_on(tmp_path: Path) -> None:
    file = tmp_path / "moody_agents.py"
    file.write_text(AGENT.format(parameter="most: int = 1", word="before"))
    variables = {"HOLDFAST_AGENTS": "moody_agents", "PYTHONPATH": str(tmp_path)}
    words = ("--no-demo", "--workers", "1", "--reload", "--allow-redefine")
    with Up(tmp_path / "var", *words, variables=variables) as up:
        up.wait_until_ready()
        seen = variables | {"HOLDFAST_DATA": str(up.data), "HOLDFAST_DEMO": "0"}

        def manage(*words: str) -> str:
            done = subprocess.run(**command(*words, variables=seen), capture_output=True, timeout=90)
            assert done.returncode == 0, done.stdout + done.stderr
            return done.stdout.splitlines()[-1]

        run_id = manage("start", "moody")
        status = "SELECT status, reason FROM runs_run WHERE id = %s"
        soon(lambda: up.ask(status, run_id)[0][0] == "waiting", 60)
        worker = up.pid_of("worker", "w1")
        file.write_text(AGENT.format(parameter="most: int = 2", word="after"))
        os.utime(file)
        soon(lambda: (pid := up.pid_of("worker", "w1")) and pid != worker, 60)
        manage("signal", run_id, "go")
        soon(lambda: up.ask(status, run_id)[0][0] == "done", 60)
        kinds = [kind for (kind,) in up.ask("SELECT kind FROM journal_entry WHERE run_id = %s ORDER BY seq", run_id)]
        assert "PIN" in kinds and kinds[-1] == "DONE"
        assert "moody_agents.py has changed" in up.printed()
        ended = up.ask("SELECT end_reason FROM runs_workersession WHERE ended_at IS NOT NULL")
        assert ended == [("stopped",)], "it let its runs go, and was not killed"
