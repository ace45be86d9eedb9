"""`manage.py drain` and `undrain`."""

import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from uuid import UUID

import pytest
from django.db import OperationalError, connection

from recovery.drains import advance_drains, order_drain
from recovery.models import Drain, Phase
from runs.gates import place_gate
from runs.models import AuditRecord, Gate, Run
from tests.api.conftest import Desk
from tests.cli.manage import AtTerminal, manage, refused
from tests.rig.ledger import wait_until


def test_a_drain_is_ordered_warned_about_and_lifted(desk: Desk) -> None:
    made = manage("drain", "--scope", "agent:desk", "--timeout", "1", "--reason", "deploy 8")
    drain = Drain.objects.get()
    assert (made.code, made.last) == (0, str(drain.pk)) and drain.owner.startswith("shell:")
    assert made.rows[0][:2] == ["agent:desk", "stopping"]
    assert "below the longest timeout in the scope" in made.err
    again = refused(manage("drain", "--scope", "agent:desk"))
    assert f"ordered drain {drain.pk} of agent:desk" in again and "deploy 8" in again
    lifted = manage("undrain", "--scope", "agent:desk", "--reason", "not now")
    assert (lifted.code, lifted.last) == (0, str(drain.pk))
    assert Gate.objects.get().lift_reason == "not now"
    assert "in force: none" in refused(manage("undrain", "--scope", "agent:desk"))


def test_without_words_everything_is_drained_and_lifted(desk: Desk) -> None:
    assert "none is in force" in refused(manage("undrain"))
    assert manage("drain").code == 0 and Drain.objects.get().scope == "all"
    manage("drain", "--scope", "agent:desk")
    assert manage("undrain").rows[0][0] == "all", "of several it is the one of everything"
    manage("drain", "--scope", "agent:post")
    said = refused(manage("undrain"))
    assert "agent:desk" in said and "agent:post" in said
    assert manage("undrain", "--scope", Drain.objects.get(scope="agent:post").pk).code == 0
    assert manage("undrain").rows[0][0] == "agent:desk"


def test_at_a_terminal_everything_is_asked_about(desk: Desk, at_terminal: AtTerminal) -> None:
    asked = at_terminal("drain", "--reason", "a slip")
    assert "0 in flight, 1 workers" in asked.read_until("Drain everything")
    asked.type("n\n")
    assert asked.end().code == 2 and not Drain.objects.exists()
    asked = at_terminal("drain", "--reason", "all of it")
    asked.read_until("Drain everything")
    asked.type("y\n")
    assert asked.end().code == 0 and Drain.objects.get().scope == "all"


def test_a_dry_run_says_what_it_would_touch_and_does_nothing(desk: Desk, at_terminal: AtTerminal) -> None:
    manage("start", "desk", "--input", '{"amount_cents": 1}')
    told = manage("drain", "--scope", "agent:desk", "--timeout", "600", "--dry-run")
    assert told.rows[0] == ["workers", "desk"] and told.rows[1] == ["parked, not touched", "1 queued"]
    seen = json.loads(manage("drain", "--scope", "agent:desk", "--dry-run", "--json").out)
    assert seen["parked"] == {"queued": 1} and seen["in_flight"] == []
    assert "Nothing is in flight there." in at_terminal("drain", "--scope", "agent:desk", "--dry-run").end().out
    assert not Gate.objects.exists()


def test_as_json_it_has_the_shape_of_the_api(desk: Desk) -> None:
    made = json.loads(manage("drain", "--scope", "agent:desk", "--json").out)
    assert (made["scope"], made["phase"], made["remaining"]) == ("agent:desk", "stopping", 0)
    desk.worker.session.renew(desk.worker.connections)
    advance_drains()
    lifted = json.loads(manage("undrain", "--json").out)
    assert lifted["id"] == made["id"] and lifted["lifted_at"] is not None


def test_a_wait_of_nothing_is_over_as_soon_as_the_workers_have_heard(desk: Desk) -> None:
    desk.worker.session.lease = 1.0
    done = manage("drain", "--scope", "agent:nobody", "--wait")
    assert done.code == 0 and done.rows[0][1] == "done"


def test_a_wait_follows_the_drain_that_there_is_and_takes_over_until_gone(desk: Desk) -> None:
    """As the stop of a worker that an operator has drained first, or a pipeline that was interrupted."""
    desk.worker.session.lease = 1.0
    drain = order_drain(scope="worker:desk", timeout=600, reason="new kernel", actor="olga")
    again = manage("drain", "--scope", "worker:desk", "--until-gone", "--wait", "--reason", "systemd stops it")
    assert (again.code, again.last) == (0, str(drain.pk)) and again.rows[0][1] == "done"
    assert f"olga ordered drain {drain.pk}: new kernel" in again.err
    drain.refresh_from_db()
    assert drain.until_gone and drain.gate.lifted_at is None and Drain.objects.count() == 1
    assert AuditRecord.objects.filter(act="drain.until_gone", reason="systemd stops it").count() == 1
    assert manage("drain", "--scope", "worker:desk", "--wait").code == 0, "one that has ended is followed too"


def test_a_wait_of_a_drain_with_a_later_deadline_has_its_own_patience(desk: Desk) -> None:
    held(desk)
    order_drain(scope="worker:desk", timeout=3600, reason="new kernel", actor="olga")
    began = time.monotonic()
    late = manage("drain", "--scope", "worker:desk", "--timeout", "1", "--wait")
    assert late.code == 3 and time.monotonic() - began < 60
    assert late.rows[-2][1] in ("stopping", "reaching"), "the drain itself goes on"


def test_a_wait_goes_on_behind_the_deadline_of_the_drain_that_there_is(desk: Desk) -> None:
    desk.worker.session.lease = 1.0
    run_id = held(desk)
    order_drain(scope="worker:desk", timeout=1, reason="new kernel", actor="olga")

    def ends() -> None:
        wait_until(lambda: Drain.objects.get().phase == Phase.HANDED_OVER, "its deadline comes")
        Run.objects.filter(id=run_id).update(session_id=None, status="queued")

    with ThreadPoolExecutor(1) as threads:
        freed = threads.submit(closing_its_connection, ends)
        assert manage("drain", "--scope", "worker:desk", "--timeout", "60", "--wait").code == 0
        freed.result()


def test_a_wait_at_a_gate_that_is_no_drain_gives_it_a_deadline_and_leaves_it(desk: Desk) -> None:
    desk.worker.session.lease = 1.0
    gate = place_gate(scope="worker:desk", reason="look first", actor="max")
    done = manage("drain", "--scope", "worker:desk", "--until-gone", "--wait", "--reason", "the pod stops")
    drain = Drain.objects.get()
    assert done.code == 0 and (drain.gate, drain.reason, drain.until_gone) == (gate, "the pod stops", False)
    assert gate.lifted_at is None and "ordered drain" in refused(manage("drain", "--scope", "worker:desk"))


def test_a_database_that_is_away_is_not_waited_for_longer_than_was_said(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever stops a worker counts on it: what comes after this wait needs its own time."""
    held(desk)

    def away() -> None:
        raise OperationalError("the connection is refused")

    monkeypatch.setattr("recovery.management.commands.drain.advance_drains", away)
    gone = manage("drain", "--scope", "worker:desk", "--timeout", "1", "--wait")
    assert gone.code == 3 and "still does not answer" in gone.err


def held(desk: Desk) -> UUID:
    """A run that the worker holds."""
    manage("start", "desk", "--input", '{"amount_cents": 1}')
    run = Run.objects.get()
    Run.objects.filter(id=run.id).update(session_id=desk.worker.session.id, status="running", epoch=1)
    return run.id


def closing_its_connection(act: Callable[[], None]) -> None:
    try:
        act()
    finally:
        connection.close()


def test_wrong_words_are_refused(desk: Desk) -> None:
    assert "everything" in refused(manage("drain", "--scope", "everything"))
    assert "1 second to 7 days" in refused(manage("drain", "--timeout", "0"))
    assert "--timeout" in refused(manage("drain", "--timeout", "soon"))
