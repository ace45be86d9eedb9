"""`manage.py drain` and `undrain`."""

import json

from recovery.drains import advance_drains
from recovery.models import Drain
from runs.models import Gate
from tests.api.conftest import Desk
from tests.cli.manage import AtTerminal, manage, refused


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


def test_wrong_words_are_refused(desk: Desk) -> None:
    assert "everything" in refused(manage("drain", "--scope", "everything"))
    assert "1 second to 7 days" in refused(manage("drain", "--timeout", "0"))
    assert "--timeout" in refused(manage("drain", "--timeout", "soon"))
