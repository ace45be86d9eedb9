"""One order of a fork is one fork, however often it is sent."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from uuid import UUID

import pytest
from django.db import connection

from journal.verify import verify_run
from recovery.errors import ForkRequestTaken
from runs.commands import cancel_run
from runs.errors import BadInput
from runs.models import Run
from runs.queries import entries_of
from tests.recovery.test_fork import chain, fork
from tests.rig.crew import Crew, start
from tests.rig.ledger import Ledger

pytestmark = pytest.mark.django_db(transaction=True)


def test_orders_that_come_at_once_under_one_request_are_one_fork(crew: Crew, ledger: Ledger) -> None:
    run_id = chain(crew)

    def order(_: int) -> UUID:
        try:
            return fork(run_id, 4, request_id="a click").id
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        made = set(pool.map(order, range(4)))
    assert len(made) == 1 and Run.objects.filter(forked_from=run_id).count() == 1
    told = [entry for entry in entries_of(run_id) if entry.body.get("fork")]
    assert [entry.body["fork"] for entry in told] == [str(made.pop())] and verify_run(run_id) == []


def test_another_order_under_the_same_request_is_refused_and_names_the_fork(crew: Crew, ledger: Ledger) -> None:
    run_id = chain(crew)
    made = fork(run_id, 4, request_id="a click")
    for other in ({"at": 5}, {"reason": "another"}, {"actor": "max"}, {"release": str(made.release)}):
        with pytest.raises(ForkRequestTaken) as refused:
            fork(**{"run_id": run_id, "at": 4, "request_id": "a click"} | other)  # type: ignore[arg-type]
        assert refused.value.fork == str(made.id) and refused.value.by == "olga"
    assert fork(run_id, 5, request_id="another click").id != made.id
    assert Run.objects.filter(forked_from=run_id).count() == 2


def test_a_request_is_known_though_the_fork_holds_the_business_id(crew: Crew) -> None:
    run_id = start("only", labels={"order": "7"})
    cancel_run(run_id=run_id, reason="no", actor="olga")
    crew.drive(run_id)
    made = fork(run_id, 1, request_id="a click")
    assert fork(run_id, 1, request_id="a click").id == made.id


def test_what_a_fork_has_copied_is_no_request_of_its_own(crew: Crew, ledger: Ledger) -> None:
    run_id = start("chain", {"steps": 3, "effect": "read"})
    first = fork(run_id, 1, request_id="a click")  # the source goes on, and its journal has the word behind START
    second = fork(run_id, 2, request_id="another")
    assert entries_of(second.id)[1].body["fork"] == str(first.id)
    of_the_fork = fork(second.id, 1, request_id="a click")
    assert of_the_fork.forked_from_id == second.id


def test_a_name_is_text_of_some_length(crew: Crew, ledger: Ledger) -> None:
    run_id = chain(crew)
    for name in ("", "x" * 201, "\0"):
        with pytest.raises(BadInput):
            fork(run_id, 4, request_id=name)
