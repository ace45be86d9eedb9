"""A provider that does not answer an agent of pydantic-ai: asked again by the engine, or not before somebody looked."""

from __future__ import annotations

import pytest

from journal.entries import Entry, Kind
from runs.commands import resume_run, retry_run
from runs.queries import entries_of
from tests.integrations.test_journaled_wire import RESULT, TURNS
from tests.rig.crew import Crew, start, state
from tests.rig.ledger import Ledger
from tests.rig.providers import Providers


def errors(run_id: object) -> list[Entry]:
    return [entry for entry in entries_of(run_id) if entry.kind == Kind.ERROR and entry.step is None]  # type: ignore[arg-type]


def drive_on(crew: Crew, run_id: object) -> str:
    """Its backoff is not waited for."""
    run = crew.advance(run_id)  # type: ignore[arg-type]
    if run.status == "waiting":
        retry_run(run_id=run.id, reason="now", actor="olga")
    return crew.drive(run.id).status


@pytest.mark.parametrize(
    ("agent", "fault", "code"),
    [
        ("anthropic", "rate_limit", "rate_limited"),
        ("anthropic", "cut", "connection_lost"),
        ("anthropic", "early_end", "cut_stream"),
        ("chat", "server_error", "server_error"),
        ("chat", "early_end", "cut_stream"),
        ("anthropic-plain", "garbage", "garbage"),
    ],
)
def test_it_is_asked_again(crew: Crew, ledger: Ledger, providers: Providers, agent: str, fault: str, code: str) -> None:
    providers.script("desk", TURNS)
    providers.fault(fault, turn=2)
    run_id = start(agent, "Refund o-1")
    assert drive_on(crew, run_id) == "done"
    assert (state(run_id).done or {})["result"] == RESULT
    assert [entry.body["code"] for entry in errors(run_id)] == [code]
    assert [seen.turn for seen in providers.requests] == [0, 1, 2, 2, 3, 4], "each request is one of the journal's"


@pytest.mark.parametrize("fault", ["authentication", "quota", "bad_request"])
def test_what_no_second_try_mends_waits_for_somebody(
    crew: Crew, ledger: Ledger, providers: Providers, fault: str
) -> None:
    providers.script("desk", TURNS)
    providers.fault(fault, turn=1)
    run_id = start("chat", "Refund o-1")
    run = crew.drive(run_id)
    assert run.status == "held"
    assert "openai-chat:desk does not answer" in run.reason
    resume_run(run_id=run_id, reason="paid the bill", actor="olga")
    assert crew.drive(run_id).status == "done"
    assert len(errors(run_id)) == 1


def test_what_matches_the_redaction_is_struck_and_the_run_goes_on(
    crew: Crew, ledger: Ledger, providers: Providers, settings: object
) -> None:
    settings.HOLDFAST_REDACT = "see"  # type: ignore[attr-defined]
    providers.script("desk", TURNS)
    run_id = start("anthropic", "Refund o-1")
    assert crew.drive(run_id).status == "done"
    assert "Let me see" not in str([entry.body for entry in entries_of(run_id)])
