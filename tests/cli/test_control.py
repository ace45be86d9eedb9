"""`manage.py` cancel, hold, resume, unquarantine, retry, note, signal, answer: one run, a reason, its id at the end."""

import json

import pytest

from journal.entries import Draft, Kind
from runs.commands import locked_run
from runs.models import Run, Status
from tests.api.conftest import Desk
from tests.cli.manage import Done, manage, refused


def started(desk: Desk, agent: str, input: str = "null") -> str:
    run = manage("start", agent, "--input", input).last
    desk.work()
    return run


def changed(done: Done, run: str) -> Run:
    assert done.code == 0 and done.last == run, done.err
    return Run.objects.get(id=run)


def entries(run: str, kind: str) -> list[str]:
    return [row[10] for row in manage("run", run).rows if row[3] == kind]


def test_cancel(desk: Desk) -> None:
    run = started(desk, "desk", '{"amount_cents": 9000}')
    assert changed(manage("cancel", run, "--reason", "ordered twice"), run).status == Status.QUEUED
    desk.work()
    assert Run.objects.get().status == Status.CANCELLED
    assert "ended" in refused(manage("cancel", run, "--reason", "again"))


def test_hold_and_resume(desk: Desk) -> None:
    run = started(desk, "desk", '{"amount_cents": 9000}')
    assert "not held" in refused(manage("resume", run))
    assert changed(manage("hold", run, "--reason", "look first"), run).status == Status.HELD
    assert changed(manage("resume", run, "--reason", "looked"), run).status == Status.QUEUED
    assert any("looked" in text for text in entries(run, "CONTROL"))


def test_unquarantine(desk: Desk) -> None:
    run = started(desk, "desk", '{"amount_cents": 9000}')
    assert "not quarantined" in refused(manage("unquarantine", run, "--reason", "more memory"))
    with locked_run(Run.objects.get().id) as held:
        held.append([Draft(Kind.CONTROL, {"verb": "quarantine", "reason": "it died"})], "system")
    assert changed(manage("unquarantine", run, "--reason", "more memory"), run).status == Status.QUEUED


def test_retry(desk: Desk) -> None:
    run = started(desk, "patient")
    assert changed(manage("retry", run, "--reason", "the service is back"), run).status == Status.QUEUED
    desk.work()
    assert Run.objects.get().status == Status.DONE
    other = started(desk, "desk", '{"amount_cents": 9000}')
    assert "tried again" in refused(manage("retry", other, "--reason", "hurry"))


def test_note(desk: Desk) -> None:
    run = started(desk, "desk", '{"amount_cents": 9000}')
    changed(manage("note", run, "the customer called"), run)
    assert "the customer called" in entries(run, "NOTE")
    assert "reason" in refused(manage("note", run, " "))


def test_signal(desk: Desk) -> None:
    run = started(desk, "waiter")
    for payload in ('{"n": 1}', '{"n": 1}'):  # the second is the first again
        changed(manage("signal", run, "paid", "--payload", payload, "--id", "s-1"), run)
    changed(manage("signal", run, "paid"), run)
    desk.work()
    assert json.loads(manage("run", run, "--json").out)["result"] == [{"n": 1}, None]
    assert "ended" in refused(manage("signal", run, "paid"))
    assert "--payload" in refused(manage("signal", run, "paid", "--payload", "NaN"))


def test_answer(desk: Desk) -> None:
    run = started(desk, "asker")

    def asks() -> int:
        seq: int = json.loads(manage("run", run, "--json").out)["waits"][0]["seq"]
        return seq

    size = asks()
    assert "integer" in refused(manage("answer", run, size, "large"))
    assert "integer" in refused(manage("answer", run, size, "42", "--text"))
    changed(manage("answer", run, size, "42"), run)
    assert "before" in refused(manage("answer", run, size, "43"))
    desk.work()
    changed(manage("answer", run, asks(), "blue"), run)
    desk.work()
    assert json.loads(manage("run", run, "--json").out)["result"] == {"size": 42, "colour": "blue"}
    assert "no such question" in refused(manage("answer", run, 1, "x"))


@pytest.mark.parametrize(
    "verb, words",
    [
        ("cancel", ["--reason", "x"]),
        ("hold", ["--reason", "x"]),
        ("note", ["x"]),
        ("signal", ["paid"]),
    ],
)
def test_json_is_the_run_of_the_api(desk: Desk, verb: str, words: list[str]) -> None:
    run = started(desk, "waiter")
    shown = json.loads(manage(verb, run, *words, "--json").out)
    assert shown["id"] == run and shown["agent"] == "waiter" and "waits" in shown


@pytest.mark.parametrize("verb", ["cancel", "hold", "unquarantine", "retry"])
def test_a_reason_and_a_run_are_needed(dsn: str, verb: str) -> None:
    assert "--reason" in refused(manage(verb, "r-00000000"))
    assert "RUN" in refused(manage(verb, "--reason", "x"))
    assert "no such run" in refused(manage(verb, "r-00000000", "--reason", "x"))
