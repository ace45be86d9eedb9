"""What is declared `Secret`, or matches HOLDFAST_REDACT, reaches the tool and nothing else (E28)."""

import io
import logging
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import psycopg
import pytest

from config.logs import StruckFormatter
from journal.tags import Sealed
from runs import testing
from runs.commands import hold_run, note_run, resume_run, signal_run
from runs.errors import BadInput
from runs.gates import place_gate
from runs.models import Run
from runs.queries import entries_of
from runs.registry import agents, announce
from runs.secrets import SecretUnreadable, in_use, opened, seal, sealed_by, struck, unseal
from tests.rig.crew import Crew, start, state
from tests.runs import secretive
from tests.runs.secretive import CARD, NUMBER, SECRET

EVERY_TABLE = """
SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' AND table_type = 'BASE TABLE'
"""


@pytest.fixture
def crew(crew: Crew, settings: Any) -> Crew:
    settings.HOLDFAST_AGENTS = ("tests.runs.secretive",)
    agents.cache_clear()
    announce()
    secretive.seen.clear()
    return crew


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    """What a process would write."""
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(StruckFormatter("%(levelname)s %(name)s: %(message)s"))
    logging.getLogger().addHandler(handler)
    yield written
    logging.getLogger().removeHandler(handler)


def everywhere(crew: Crew, log: io.StringIO, *words: Any) -> list[str]:
    """Where in the database or the log one of the words stands in clear."""
    found = []
    with psycopg.connect(crew.dsn) as conn:
        for (table,) in conn.execute(EVERY_TABLE).fetchall():
            rows = conn.execute(f'SELECT to_jsonb(t)::text, t::text FROM "{table}" t').fetchall()  # type: ignore[arg-type]
            text = "\n".join(part for row in rows for part in row)
            for word in map(str, words):
                found += [f"{table}: {word}" for form in (word, word.encode().hex()) if form in text]
    return found + [f"log: {word}" for word in map(str, words) if word in log.getvalue()]


@pytest.mark.parametrize("agent", ["charges", "decides-secretly", "models-secretly"])
def test_a_secret_reaches_its_tool_and_nothing_else(crew: Crew, log: io.StringIO, agent: str) -> None:
    run_id = start(agent, {})
    assert crew.drive(run_id).status == "done", Run.objects.get(id=run_id).reason
    assert secretive.seen == [SECRET]
    assert everywhere(crew, log, SECRET) == []
    assert "charging with [secret]" in log.getvalue()
    assert state(run_id).slots[1].result == {"said": "used [secret]", "[secret]": ["[secret]"]}


@pytest.mark.parametrize("how", ["permanent", "transient", "unknown", "bug"])
def test_what_a_tool_raises_does_not_tell_it(crew: Crew, log: io.StringIO, how: str) -> None:
    run_id = start("breaks", how)
    crew.drive(run_id)
    assert secretive.seen and everywhere(crew, log, SECRET) == []
    assert "the key [secret] was refused" in str([entry.body for entry in entries_of(run_id)])


def test_secrets_inside_of_other_arguments_and_those_that_are_no_text_are_sealed_too(
    crew: Crew, log: io.StringIO
) -> None:
    run_id = start("sums", {})
    assert crew.drive(run_id).status == "done", Run.objects.get(id=run_id).reason
    assert everywhere(crew, log, SECRET, NUMBER) == []
    assert secretive.seen == [({"name": "olga", "password": SECRET}, NUMBER)]
    call = state(run_id).slots[1].body
    assert call["args"]["account"]["name"] == "olga" and isinstance(call["args"]["pin"], Sealed)


def test_a_call_that_waits_for_approval_shows_that_there_is_a_secret_and_not_which(
    crew: Crew, log: io.StringIO
) -> None:
    run_id = start("charges-much", {})
    assert crew.drive(run_id).status == "awaiting_approval"
    body = state(run_id).slots[1].body
    assert body["summary"] == "Charge with [secret]" and isinstance(body["args"]["api_key"], Sealed)
    assert everywhere(crew, log, SECRET) == [] and secretive.seen == []


def test_a_secret_of_the_wrong_type_is_refused_without_being_quoted(crew: Crew, log: io.StringIO) -> None:
    run_id = start("charges-wrongly", {})
    run = crew.drive(run_id)
    assert run.status == "failed" and everywhere(crew, log, SECRET) == []
    assert "api_key" in str(entries_of(run_id)[-1].body)


def test_a_resumed_flow_compares_what_is_sealed(crew: Crew, log: io.StringIO) -> None:
    run_id = start("charges-much", {})
    crew.drive(run_id)
    crew.lose(crew.standing or crew.hire())
    crew.standing = None
    resume(run_id)
    run = crew.drive(run_id)
    assert run.status == "awaiting_approval", run.reason


def resume(run_id: UUID) -> None:
    hold_run(run_id=run_id, reason="to look", actor="olga")
    resume_run(run_id=run_id, reason="looked", actor="olga")


def test_a_worker_without_the_key_sends_nothing_and_says_what_it_needs(
    crew: Crew, log: io.StringIO, settings: Any
) -> None:
    settings.HOLDFAST_REDACT = r"\b4\d{15}\b"
    run_id = start("hands-on", {"card": CARD})
    settings.SECRET_KEY = "another"
    assert crew.drive(run_id).status == "failed"
    assert secretive.seen == [] and "SECRET_KEY_FALLBACKS" in str(entries_of(run_id)[-1].body)
    assert everywhere(crew, log, CARD) == []


def test_a_child_takes_a_secret_that_its_parents_journal_does_not_tell(crew: Crew, log: io.StringIO) -> None:
    run_id = start("spawns", {})
    assert crew.drive_tree(run_id).status == "done", Run.objects.get(id=run_id).reason
    assert secretive.seen == [SECRET, "afterwards"]
    assert everywhere(crew, log, SECRET) == []
    assert isinstance(state(run_id).slots[1].body["input"]["password"], Sealed)


def test_what_people_say_is_struck_and_what_they_hand_on_is_sealed(crew: Crew, log: io.StringIO, settings: Any) -> None:
    settings.HOLDFAST_REDACT = r"\b4\d{15}\b"
    run_id = start("hands-on", {"card": "none"})
    note_run(run_id=run_id, text=f"the card {CARD} is lost", actor="olga")
    signal_run(run_id=run_id, name="card", payload={"card": CARD}, actor="olga")
    assert everywhere(crew, log, CARD) == []
    assert entries_of(run_id)[-1].body["payload"]["card"] == seal(CARD)


def test_what_matches_is_in_no_row_either_and_is_refused_as_a_name(crew: Crew, log: io.StringIO, settings: Any) -> None:
    settings.HOLDFAST_REDACT = r"\b4\d{15}\b"
    run_id = start("plain", {CARD: 1})
    crew.drive(run_id)
    held = start("plain", {})
    hold_run(run_id=held, reason=f"the card {CARD} is lost", actor="olga")
    assert Run.objects.get(id=held).reason == "held by olga: the card [secret] is lost"
    place_gate(scope="agent:plain", reason=f"lost {CARD}", actor="olga")
    for given in ({"request_key": f"k {CARD}"}, {"labels": {"card": CARD}}):
        with pytest.raises(BadInput, match="HOLDFAST_REDACT"):
            start("plain", {}, **given)
    with pytest.raises(BadInput, match="HOLDFAST_REDACT"):
        signal_run(run_id=held, name=CARD, actor="olga")
    assert everywhere(crew, log, CARD) == []


def test_a_sealed_input_is_handed_on_to_a_tool_that_gets_it_in_clear(
    crew: Crew, log: io.StringIO, settings: Any
) -> None:
    settings.HOLDFAST_REDACT = r"\b4\d{15}\b"
    run_id = start("hands-on", {"card": CARD})
    assert crew.drive(run_id).status == "done"
    assert secretive.seen == [CARD] and everywhere(crew, log, CARD) == []


def test_text_that_matches_the_pattern_is_sealed_on_its_way_to_a_tool_and_struck_elsewhere(
    crew: Crew, log: io.StringIO, settings: Any
) -> None:
    settings.HOLDFAST_REDACT = r"\b4\d{15}\b"
    run_id = start("plain", {"card": CARD})
    run = crew.drive(run_id)
    assert run.status == "done", run.reason
    assert secretive.seen == [f"card {CARD}"]
    assert everywhere(crew, log, CARD) == []
    assert entries_of(run_id)[-1].body["result"]["said"] == "heard [secret]"


def test_in_memory_it_is_the_same(settings: Any) -> None:
    trial = testing.run(secretive.with_secret, tools=testing.REAL)
    assert trial.status == "done" and SECRET not in repr([entry.body for entry in trial.journal])


def test_sealing_is_stable_and_opened_only_with_the_key(settings: Any) -> None:
    assert seal({"a": [1]}) == seal({"a": [1]}) and seal("x") != seal("y") and repr(seal("x")) == "[secret]"
    sealed = seal("x")
    old = settings.SECRET_KEY
    settings.SECRET_KEY = "another"
    with pytest.raises(SecretUnreadable, match="SECRET_KEY_FALLBACKS"):
        unseal(sealed)
    settings.SECRET_KEY_FALLBACKS = [old]
    assert unseal(sealed) == "x"


def test_a_schema_says_where_the_secrets_are() -> None:
    schema = {
        "$defs": {"Key": {"type": "string", "writeOnly": True}},
        "properties": {
            "key": {"$ref": "#/$defs/Key"},
            "keys": {"type": "array", "items": {"anyOf": [{"$ref": "#/$defs/Key"}, {"type": "null"}]}},
            "open": {"type": "string"},
        },
    }
    value = {"key": "k", "keys": ["a", None], "open": "o", "other": "k"}
    assert sealed_by(schema, value) == {"key": seal("k"), "keys": [seal("a"), None], "open": "o", "other": "k"}
    assert opened(sealed_by(schema, value)) == value


def test_a_log_line_is_clean_only_while_the_call_lasts_and_short_words_are_left_alone() -> None:
    with in_use({"key": seal("long-secret"), "pin": seal("12")}) as args:
        assert args == {"key": "long-secret", "pin": "12"}
        assert struck({"why": ("no long-secret", 12)}, ("long-secret",)) == {"why": ("no [secret]", 12)}
