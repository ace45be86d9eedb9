"""`manage.py pin`: judged, then moved; the verdict alone with --dry-run."""

import json

import pytest

from recovery.bulk import carry_out_bulk
from runs.management.commands import bulk
from runs.models import BulkAct, Run
from runs.sdk import Agent, Finish
from tests.api.conftest import Desk
from tests.cli.manage import ROOT, manage, refused
from tests.rig.versions import judges_at_once, next_version, serve_also, serving


@pytest.fixture
def run(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> str:
    run = manage("start", "desk", "--input", '{"amount_cents": 9000}').last
    desk.work()
    judges_at_once(desk.worker, monkeypatch)
    serving(desk.worker, next_version(run), serve_also(Agent("desk", "3", (), lambda view: Finish())))  # type: ignore[arg-type]
    return run


def test_pin(desk: Desk, run: str) -> None:
    assert "Give a reason" in refused(manage("pin", run, "--release", "2"))
    done = manage("pin", run, "--release", "desk@2", "--reason", "v1 is wrong")
    assert (done.code, done.last) == (0, run), done.err
    moved = Run.objects.get(id=run)
    assert (str(moved.release), moved.status) == ("desk@2", "queued")
    assert "is pinned to this release already" in refused(manage("pin", run, "--release", "2", "--reason", "again"))


def test_pin_what_would_decide_otherwise(run: str) -> None:
    said = refused(manage("pin", run, "--release", "3", "--reason", "v1 is wrong"))
    assert "cannot go on under this release" in said and "entry" in said
    assert str(Run.objects.get(id=run).release) == "desk@1"


def test_help_and_manual_tell_a_refusal_from_an_answer(run: str) -> None:
    assert "1 with --dry-run: it may not be moved" in " ".join(manage("pin", "--help").out.split())
    manual = " ".join((ROOT / "docs" / "commands.md").read_text().split())
    assert "`--dry-run` only judges: exit 1 if it may not be moved. Without it that is a refusal, exit 2." in manual


def test_pin_dry_run(run: str) -> None:
    done = manage("pin", run, "--release", "2", "--dry-run")
    assert (done.code, done.last) == (0, "compatible")
    done = manage("pin", run, "--release", "3", "--dry-run")
    assert done.code == 1 and done.last in ("fork needed", "refused") and len(done.rows) > 1
    verdict = json.loads(manage("pin", run, "--release", "3", "--dry-run", "--json").out)
    assert verdict["verdict"] == done.last and verdict["reasons"]
    assert str(Run.objects.get(id=run).release) == "desk@1"


def test_bulk_pin_after_a_dry_run(run: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def sweep(act: BulkAct) -> None:
        while BulkAct.objects.filter(pk=act.pk, ended_at=None).exists():
            carry_out_bulk(lambda: False)

    monkeypatch.setattr(bulk, "wait_for", sweep)
    judged = manage("bulk", "pin", "release:desk@1", "--release", "desk@2", "--dry-run")
    assert judged.code == 0 and judged.out.startswith("1 compatible, 0 need a fork, 0 refused"), judged.err
    assert [row[2] for row in manage("bulk", "show", judged.last).rows] == ["compatible"]
    words = ("bulk", "pin", "release:desk@1", "--release", "desk@2", "--reason", "v1 is wrong", "--yes", "--wait")
    done = manage(*words, "--judged", judged.last)
    assert done.out.startswith("1 done, 0 skipped"), done.err
    assert str(Run.objects.get(id=run).release) == "desk@2"
    assert "missing option" in manage("bulk", "pin", "", "--yes").err.lower()
