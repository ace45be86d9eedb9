"""`manage.py fork`: what it would copy and could repeat, then the fork; `manage.py compare`."""

from __future__ import annotations

import json

import pytest

from runs.models import Run
from runs.queries import entries_of
from tests.api.conftest import Desk
from tests.cli.manage import manage, refused
from tests.rig.versions import judges_at_once


@pytest.fixture
def run(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> str:
    run = manage("start", "desk", "--input", '{"amount_cents": 9000}').last
    desk.work()
    judges_at_once(desk.worker, monkeypatch)
    return run


def test_fork(desk: Desk, run: str) -> None:
    assert "Give --at and --reason" in manage("fork", run, "--at", "1").err
    done = manage("fork", run, "--at", "1", "--reason", "once more")
    assert done.code == 0, done.err
    forked = Run.objects.get(id=done.last)
    assert (str(forked.forked_from_id), forked.forked_at, forked.status) == (run, 1, "queued")
    assert entries_of(forked.id)[0].body["fork"]["by"].startswith("shell:")
    assert "A fork begins behind an entry" in refused(manage("fork", run, "--at", "3", "--reason", "no"))


def test_fork_preview(desk: Desk, run: str) -> None:
    done = manage("fork", run, "--preview", "--at", "1")
    assert done.code == 0 and "Copied: 1 entries" in done.out and "could repeat" in done.out
    told = json.loads(manage("fork", run, "--preview", "--at", "1", "--json").out)
    assert told["allowed"] and told["at"] == 1 and told["effects"][0]["could_repeat"]
    assert manage("fork", run, "--preview", "--at", "3").code == 1
    assert not Run.objects.filter(forked_from=run).exists()


def test_fork_with_an_edit(desk: Desk, run: str) -> None:
    said = ("fork", run, "--at", "1", "--reason", "another amount", "--edit")
    done = manage(*said, '1={"amount_cents": 20}')
    assert done.code == 0, done.err
    assert entries_of(Run.objects.get(id=done.last).id)[0].body["input"] == {"amount_cents": 20}
    assert "SEQ=JSON" in manage(*said, "x").err and "no such entry" in refused(manage(*said, "9=1"))


def test_compare(desk: Desk, run: str) -> None:
    forked = manage("fork", run, "--at", "1", "--reason", "once more").last
    done = manage("compare", forked)
    assert done.code == 1 and "only in the source" in done.out and "entries 1 to 1" in done.out
    assert manage("compare", run, run).code == 0
    assert "It is no fork" in refused(manage("compare", run))
