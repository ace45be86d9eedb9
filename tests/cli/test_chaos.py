"""`manage.py chaos`: its words and its report. Workers are really killed in tests/crash and tests/faults."""

import json

import pytest

from recovery import chaos
from recovery.chaos import Brief, Report
from tests.cli.manage import manage, refused

KEPT = Report(2, 1, resumed=1, seconds=1.5)
BROKEN = Report(2, 1, broken=["r-1: 2 effects under key k"])


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """What `rehearse` was called with; it kills nobody."""
    asked: dict[str, object] = {"report": KEPT}

    def rehearse(**how: object) -> Report:
        asked.update(how)
        report = asked["report"]
        assert isinstance(report, Report)
        return report

    monkeypatch.setattr("recovery.management.commands.chaos.rehearse", rehearse)
    assert chaos.rehearse is not rehearse
    return asked


def test_every_option_reaches_the_rehearsal(given: dict[str, object]) -> None:
    words = ["--seconds", "7", "--every", "1", "--patience", "9", "--agent", "desk", "--ledger", "http://127.0.0.1:1"]
    done = manage("chaos", "--runs", 2, "--input", '{"n": {n}}', *words)
    assert done.code == 0 and "no key has two effects" in done.out
    briefs = [Brief("desk", {"n": 1}), Brief("desk", {"n": 2})]
    wanted = {"briefs": briefs, "seconds": 7, "every": 1, "patience": 9}
    assert wanted.items() <= given.items() and given["ledger"] == "http://127.0.0.1:1"


def test_a_broken_promise_is_exit_1(given: dict[str, object]) -> None:
    given["report"] = BROKEN
    told, document = manage("chaos"), manage("chaos", "--json")
    assert told.code == document.code == 1 and "2 effects under key k" in told.err
    assert json.loads(document.out)["broken"] == BROKEN.broken


@pytest.mark.parametrize(
    "words", [["--runs", "0"], ["--seconds", "0"], ["--every", "-1"], ["--agent", "desk", "--input", "{"]]
)
def test_wrong_words_are_refused(given: dict[str, object], words: list[str]) -> None:
    assert words[-2] in refused(manage("chaos", *words))
