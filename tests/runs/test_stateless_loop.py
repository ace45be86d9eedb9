"""A model loop without a journal: right for what only reads and is short; nobody is waited for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest

from demo.providers.turns import call
from journal.encoding import decode
from runs.agents import Agent
from runs.queries import entries_of
from runs.sdk import start
from tests.rig.crew import Crew
from tests.rig.ledger import Ledger
from tests.rig.providers import Providers, providers
from tests.rig.talks import desk, look, loop
from tests.rig.versions import serve_also

__all__ = ["desk", "providers"]
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def classifier(desk: Crew, providers: Providers, ledger: Ledger) -> Iterator[Agent]:
    decide = loop("openai-chat:sorts", output=bool, timeout=20.0)
    yield serve_also(Agent("sorts", "1", [look], decide, durability="stateless"))


def ended(desk: Crew, run_id: UUID) -> Any:
    run = desk.drive(run_id)
    return run.status, run.reason, decode(bytes(run.ending or b"null"))


def test_it_answers_and_leaves_no_journal(desk: Crew, classifier: Agent, providers: Providers) -> None:
    providers.script("sorts", [call("look", order="o-1"), call("final_result", result="perhaps"),
                               call("final_result", result=True)])  # fmt: skip
    run_id = start("sorts", "Is o-1 large?")
    assert ended(desk, run_id) == ("done", "", {"result": True})
    assert entries_of(run_id) == [] and len(providers.asked("sorts")) == 3
    assert desk.standing is not None and desk.standing.session.totals.snapshot()["tokens"] > 0


def test_a_short_trouble_is_waited_out_in_place(desk: Crew, classifier: Agent, providers: Providers) -> None:
    providers.script("sorts", [call("final_result", result=False)])
    providers.fault("overloaded", model="sorts", times=1, retry_after=1)
    assert ended(desk, start("sorts", "?"))[2] == {"result": False}


def test_what_would_wait_for_a_person_fails_instead(desk: Crew, classifier: Agent, providers: Providers) -> None:
    providers.script("sorts", ["x"])
    providers.fault("authentication", model="sorts", times=None)
    status, reason, _ = ended(desk, start("sorts", "?"))
    assert status == "failed" and "cannot wait for anybody" in reason and "no model can be asked" in reason
