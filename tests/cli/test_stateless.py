"""Stateless runs on the command line: the same words, without a journal to show."""

import json
from typing import Any

import pytest

from runs.registry import agents, announce
from tests.cli.manage import AtTerminal, manage


@pytest.fixture
def classifiers(dsn: str, settings: Any) -> Any:
    settings.HOLDFAST_AGENTS = ("tests.runs.classifiers",)
    agents.cache_clear()
    announce()
    yield
    agents.cache_clear()


def test_it_is_started_listed_and_shown(classifiers: None, at_terminal: AtTerminal) -> None:
    run = manage("start", "classify", "--input", '"a letter"').last
    assert [row[0] for row in manage("runs").rows] == [run]
    assert json.loads(manage("run", run, "--json").out)["status"] == "queued"
    assert manage("run", run).code == 0
    shown = at_terminal("run", run, NO_COLOR="1").end()
    assert shown.code == 0 and "keeps no journal" in shown.out
    assert manage("cancel", run, "--reason", "not needed").last == run
    followed = at_terminal("run", run, "--follow", NO_COLOR="1").end()
    assert followed.code == 0 and "cancelled" in followed.last
