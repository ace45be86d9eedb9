"""Forks of a model loop's run: the copied conversation goes on, and says what a person has put into it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest

from demo.providers.asked import Asked
from demo.providers.turns import Turnlike, call
from journal.verify import verify_run
from recovery.errors import ForkEditRefused
from recovery.pins import repin_run
from runs.commands import signal_run
from runs.loops.exact import exact_of
from runs.models import Run
from runs.queries import entries_of, state_of
from tests.recovery.test_fork import fork
from tests.rig.crew import Crew, start
from tests.rig.ledger import Ledger
from tests.rig.providers import Providers, providers
from tests.rig.talks import desk, loop
from tests.rig.versions import judges_at_once, next_version, serving

__all__ = ["desk", "providers"]
pytestmark = pytest.mark.django_db(transaction=True)


def two_steps(asked: Asked) -> Turnlike:
    """Looks, charges, says what it was told last."""
    told = f"I was told: {asked.latest[-1].text}"
    turns: list[Turnlike] = [call("look", order="o-1"), call("charge", amount_cents=100), told]
    return turns[asked.turn]


SLOW = pytest.mark.slow


@pytest.fixture(params=["messages", pytest.param("chat", marks=SLOW), pytest.param("responses", marks=SLOW)])
def source(
    request: Any, desk: Crew, providers: Providers, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> Iterator[UUID]:
    """A run that looked, charged and ended. Its workers judge at once."""
    providers.script("one", two_steps)
    worker = desk.standing = desk.hire()
    judges_at_once(worker, monkeypatch)
    run_id = start(f"one-{request.param}-whole", "Charge o-1.")
    assert desk.drive(run_id).status == "done"
    yield run_id


def seqs(run_id: UUID, kind: str) -> list[int]:
    return [entry.seq for entry in entries_of(run_id) if entry.kind == kind]


def result(run_id: UUID) -> Any:
    done = state_of(run_id).done
    return done["result"] if done is not None else None


def last_asked(providers: Providers) -> str:
    return providers.asked("one")[-1].body


def test_it_goes_on_with_the_conversation_of_its_source(desk: Crew, source: UUID, providers: Providers) -> None:
    before = [seen.digest for seen in providers.asked("one")]
    forked = fork(source, seqs(source, "OBS")[0])
    assert desk.drive(forked.id).status == "awaiting_approval", "what it would do, its source has done"
    assert [seen.digest for seen in providers.asked("one")] == [*before, before[1]], "asked with the same bytes"
    assert state_of(forked.id).tokens > 0 and Run.objects.get(id=forked.id).tokens < Run.objects.get(id=source).tokens


def test_an_answer_is_kept_where_the_cut_is_behind_it(desk: Crew, source: UUID, providers: Providers) -> None:
    count = len(providers.asked("one"))
    forked = fork(source, seqs(source, "PLAN")[1])
    desk.drive(forked.id)
    assert len(providers.asked("one")) == count and state_of(forked.id).slots[2].tool == "charge"


def test_edits_of_what_it_was_told_are_what_it_is_told(desk: Crew, source: UUID, providers: Providers) -> None:
    obs = seqs(source, "OBS")[1]
    edits = [{"seq": 1, "value": "Charge o-7."}, {"seq": obs, "value": {"charged": 55}}]
    forked = fork(source, obs, edits=edits)
    assert desk.drive(forked.id).status == "done"
    assert result(forked.id) == 'I was told: {"charged": 55}' and "Charge o-7." in last_asked(providers)


def test_an_edit_of_its_moves_is_made_and_is_what_it_said(desk: Crew, source: UUID, providers: Providers) -> None:
    plan = entries_of(source)[seqs(source, "PLAN")[1] - 1]
    moves = [plan.body["moves"][0] | {"args": {"amount_cents": 7}}]
    forked = fork(source, plan.seq, edits=[{"seq": plan.seq, "value": moves}])
    assert desk.drive(forked.id).status == "done", "another amount is no call of its source"
    assert state_of(forked.id).slots[2].args == {"amount_cents": 7}
    assert result(forked.id) == 'I was told: {"charged": 7}'
    said = last_asked(providers)
    assert "100" not in said and moves[0]["id"] in said
    edited = entries_of(forked.id)[plan.seq - 1].body
    assert edited["edited_at_fork"]["by"] == "olga" and "7" in json.dumps(edited["response"])
    assert verify_run(forked.id) == []
    asked = [entry for entry in entries_of(forked.id) if entry.kind == "ATTEMPT" and entry.step is None][-1]
    content = Run.objects.select_related("release").get(id=forked.id).release.contract
    assert exact_of(content, entries_of(forked.id), asked.seq).digest == asked.body["digest"]


def test_it_may_be_made_to_end_and_to_do_nothing_else(desk: Crew, source: UUID, providers: Providers) -> None:
    plan = seqs(source, "PLAN")[1]
    count = len(providers.asked("one"))
    forked = fork(source, plan, edits=[{"seq": plan, "value": [{"finish": "No charge."}]}])
    assert desk.drive(forked.id).status == "done" and result(forked.id) == "No charge."
    assert len(providers.asked("one")) == count
    with pytest.raises(ForkEditRefused, match="In a conversation"):
        fork(source, plan, edits=[{"seq": plan, "value": [{"sleep": 5}]}])


def test_a_signal_is_edited(desk: Crew, source: UUID, providers: Providers) -> None:
    point = seqs(source, "OBS")[0]
    forked = fork(source, point)
    signal_run(run_id=forked.id, name="message", payload="Hurry!", actor="olga")
    at = seqs(forked.id, "SIGNAL")[0]
    again = fork(forked.id, at, edits=[{"seq": at, "value": "Slowly."}])
    desk.drive(again.id)
    assert "Slowly." in last_asked(providers) and "Hurry" not in last_asked(providers)


def test_it_goes_on_under_another_prompt_and_model(desk: Crew, source: UUID, providers: Providers) -> None:
    providers.script("other", two_steps)
    forked = fork(source, seqs(source, "OBS")[0])
    agent = next_version(forked.id, decide=loop("openai-chat:other", prompt="Be kind."))
    assert desk.standing is not None
    serving(desk.standing, agent)
    repin_run(run_id=forked.id, release=agent.version, reason="another", actor="olga")
    assert desk.drive(forked.id).status == "awaiting_approval"
    body = providers.asked("other")[-1].body
    assert "Be kind." in body and "total_cents" in body
