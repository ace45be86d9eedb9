"""A release's own page, and two compared."""

from __future__ import annotations

import re

import pytest
from django.test import Client
from django.utils import timezone
from pydantic import BaseModel, Field

from runs.loops.declared import ModelLoop
from runs.models import Release, Stage, Status
from runs.pages.release_diff import compare
from runs.short_ids import short_id
from runs.stages import set_canary
from runs.staging import make_current
from tests.pages.conftest import signed_in
from tests.pages.conversations import Conversation
from tests.pages.journals import session
from tests.pages.test_agents import EVIL, contract
from tests.pages.test_releases import release, runs

pytestmark = pytest.mark.django_db


def page(client: Client, of: Release | str, status: int = 200) -> str:
    answer = client.get(f"/releases/{of.id if isinstance(of, Release) else of}")
    assert answer.status_code == status
    return re.sub(r"\s+", " ", answer.content.decode())


def test_its_content_is_told_whole(victor: Client) -> None:
    known = release(
        "7", Stage.CURRENT, prompt="You pay back.\nNever twice.", model={"name": "lumen-latest"},
        tools=[contract("payout")], budget={"steps": 50},
    )  # fmt: skip
    html = page(victor, known)
    for said in (
        "You pay back.", "lumen-latest", "Floating", "payout", "Keyed", "customer_id", "{steps: 50}", known.id,
        "As its rule says",
    ):  # fmt: skip
        assert said in html, said


def test_it_is_found_by_its_name_too(victor: Client) -> None:
    known = release("7")
    assert known.id in page(victor, "desk@7") and "There is no such release" in page(victor, "desk@99", 404)


def test_workers_with_different_code_are_warned_of(victor: Client) -> None:
    known = release("7", Stage.CURRENT)
    session("w1", serves=[known.id], codes={known.id: "ab" * 32})
    assert "Their code differs" not in page(victor, known)
    session("w2", serves=[known.id], codes={known.id: "cd" * 32})
    html = page(victor, known)
    assert "Their code differs" in html and "ab" * 32 in html and "cd" * 32 in html
    assert "differs" in victor.get("/releases").content.decode()


def test_whether_it_may_retire_is_answered_with_what_needs_it(victor: Client) -> None:
    old = release("6", Stage.RETIRING)
    assert "Nothing needs it" in page(victor, old)
    held = runs(old, Status.HELD)[0]
    runs(old, Status.DONE, ended_at=timezone.now())
    html = page(victor, old)
    assert "Not yet" in html and "1 run, the oldest so for less than a minute" in html and short_id(held.id) in html


def test_its_history_is_for_whoever_may_see_the_audit_list(olga: Client) -> None:
    old, new = release("7"), release("8")
    make_current(old, "the first", "max")
    make_current(new, "the tests are green", "max")
    html = page(olga, old).partition("History")[2]
    assert "Promoted</strong> desk@8 in its place by max: the tests are green" in html
    assert "Promoted</strong> by max: the first" in html
    assert "the tests are green" not in page(signed_in("victor"), old)


def test_the_end_of_a_canary_is_told_in_other_words_than_its_share(olga: Client) -> None:
    make_current(release("7"), "the first", "max")
    new = release("8")
    for share in (20, 0):
        set_canary(release_id=new.id, share=share, reason=f"share {share}", actor="max", anyway=True)
    html = page(olga, new).partition("History")[2]
    assert "Ended the canary</strong> by max: share 0" in html
    assert "Shared new runs</strong> by max: share 20" in html
    audit = olga.get("/audit").content.decode()
    assert audit.count("Ended the canary") == 1


def test_what_nobody_serves_says_how_to_start_its_worker(victor: Client) -> None:
    assert "python manage.py worker" in page(victor, release("7", Stage.CURRENT))


def test_two_are_compared_field_by_field_line_by_line_and_by_parameter(victor: Client) -> None:
    old = release("7", prompt="Pay it back.\nBe brief.", tools=[contract("payout")], budget={"steps": 5})
    more = {"properties": {"customer_id": {"type": "integer"}, "note": {"type": "string"}}}
    tools = [contract("payout", parameters=more, timeout=5.0), contract("mail")]
    new = release("8", prompt="Pay it back.\nBe kind.", tools=tools, budget={"steps": 9})
    html = re.sub(r"\s+", " ", victor.get(f"/releases/diff?from={old.id}&to={new.id}").content.decode())
    for said in (
        "budget.steps", "<del>5</del>", "<ins>9</ins>", "<b>brief</b>", "<b>kind</b>", "1 line new, 1 gone",
        "<del>string</del>", "<ins>integer</ins>", ">note<", "timeout", "Only 8 has it.",
        "no live worker serves desk@7 or desk@8",
    ):  # fmt: skip
        assert said in html, said


def test_the_settings_of_a_model_are_told_and_compared(victor: Client) -> None:
    model = {"name": "lumen-1", "timeout": 60.0, "prompt": "Be brief.", "settings": {"temperature": 0.1}}
    old = release("7", model=model)
    new = release("8", model=model | {"prompt": "Be kind.", "settings": {"temperature": 0.9}})
    assert "{timeout: 60.0, temperature: 0.1}" in page(victor, old) and "Be brief." in page(victor, old)
    lines = {line.name: line for line in compare(old, new).summary}
    assert (lines["Model"].same, lines["Model"].told) == (False, "lumen-1, settings.temperature")
    assert (lines["Prompt"].same, lines["Prompt"].told) == (False, "1 line new, 1 gone")
    assert lines["Input and bounds"].same
    same = {line.name: line for line in compare(old, release("9", model=model)).summary}
    assert same["Model"].same and same["Prompt"].same


def test_digests_are_told_by_their_first_digits(victor: Client) -> None:
    old, new = release("7", prompt="Be kind.", tools=[contract("mail")]), release("8", tools=[contract("mail")])
    session("w1", serves=[old.id], codes={old.id: "ab" * 32})
    session("w2", serves=[new.id], codes={new.id: "cd" * 32})
    lines = {line.name: line for line in compare(old, new).summary}
    assert (lines["Code"].told, lines["Code"].whole) == ("abababab to cdcdcdcd", f"{'ab' * 32} to {'cd' * 32}")
    assert len(lines["Tools"].told) == 8 and len(lines["Tools"].whole) == 64
    html = victor.get(f"/releases/diff?from={old.id}&to={new.id}").content.decode()
    assert f'title="Code {"ab" * 32} to {"cd" * 32}">abababab to cdcdcdcd<' in html


def test_a_comparison_asks_for_two_and_says_what_is_not_there(victor: Client) -> None:
    known = release("7")
    assert "Choose a release" in victor.get("/releases/diff").content.decode()
    answer = victor.get(f"/releases/diff?from={known.id}&to=nothing")
    assert answer.status_code == 404 and "There is no release nothing." in answer.content.decode()
    same = victor.get(f"/releases/diff?from={known.id}&to={known.id}").content.decode()
    assert "The same contents" in same


def test_markup_in_a_release_stays_text(max: Client) -> None:
    evil = release(
        "1<img>", agent=EVIL.replace(" ", "_"), prompt=EVIL, model={"name": EVIL}, staged_by=EVIL,
        tools=[contract(EVIL, doc=EVIL, parameters={"properties": {EVIL: {"type": EVIL, "title": EVIL}}})],
    )  # fmt: skip
    Release.objects.filter(id=evil.id).update(staged_by=EVIL)
    other = release("2", agent=evil.agent)
    for path in ("", f"/{evil.id}", f"/{evil.id}/promote", f"/diff?from={evil.id}&to={other.id}", f"/diff?from={EVIL}"):
        assert b"<img" not in max.get(f"/releases{path}").content, path


def test_how_a_loop_asks_its_model_is_told_with_the_fields_of_its_result(victor: Client) -> None:
    class Refunded(BaseModel):
        cents: int = Field(description="What was paid back")
        why: str = ""

    loop = ModelLoop(
        "anthropic:claude-haiku-4-5-20251001", "You pay back.", output=Refunded, settings={"max_tokens": 512},
        fallback=("openai:gpt-5.2-2026-06-01",), api_key={"anthropic": "$SHOP_KEY"}, base_url="$SHOP_GATEWAY",
    )  # fmt: skip
    html = page(victor, release("7", Stage.CURRENT, model=loop.content, tools=[contract("payout")]))
    for said in (
        "max_tokens", "512", "openai:gpt-5.2-2026-06-01", "$SHOP_KEY", "$SHOP_GATEWAY", "You pay back.",
        "What was paid back", "Schema of the result", "All of it, as JSON", "compact_at",
    ):  # fmt: skip
        assert said in html, said
    plain = ModelLoop("anthropic:claude-haiku-4-5-20251001").content
    assert "the text of its last answer" in page(victor, release("8", Stage.CANDIDATE, model=plain))
    assert "the text of its last answer" not in page(victor, release("9", Stage.CANDIDATE))


def test_the_pin_of_a_run_leads_to_the_prompt_and_the_tools(victor: Client) -> None:
    story = Conversation()
    html = victor.get(story.url).content.decode()
    assert f"/releases/{story.pin.id}#prompt" in html and f"/releases/{story.pin.id}#tools" in html
    html = page(victor, story.pin)
    assert 'id="prompt"' in html and 'id="tools"' in html and "Never refund twice." in html
