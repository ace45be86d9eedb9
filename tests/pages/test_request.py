"""What the model saw: the request behind an answer, recomputed and shown."""

from __future__ import annotations

import json
import shlex
from typing import Any

import pytest
from django.test import Client

from journal.entries import Kind
from runs.pages.request_page import curl_of, without_keys
from tests.pages.conversations import FALLBACK, MODEL, PROMPT, Conversation, called, support, text
from tests.pages.journals import Story
from tests.pages.test_chat import words

pytestmark = pytest.mark.django_db


def request_of(client: Client, story: Story, seq: int, query: str = "") -> Any:
    return client.get(f"{story.url}/entries/{seq}/request{query}")


def body_of(client: Client, story: Story, seq: int) -> dict[str, Any]:
    answer = request_of(client, story, seq, "?as=body")
    assert answer["Content-Disposition"].startswith("attachment")
    body: dict[str, Any] = json.loads(answer.content)
    return body


def test_the_request_behind_an_answer_has_the_prompt_the_tools_and_what_was_said(victor: Client) -> None:
    story = Conversation(input="Where is order o-1?")
    story.answers(text("Let me look."), called("lookup_order", order="o-1"))
    story.call("lookup_order", order="o-1", id="toolu_01")
    story.result({"state": "lost"})
    seq = story.answers(text("It is lost."))
    body = body_of(victor, story, seq)
    assert PROMPT in json.dumps(body["system"], ensure_ascii=False).replace("\\n", "\n")
    assert [tool["name"] for tool in body["tools"]][:2] == ["lookup_order", "refund"]
    assert "Where is order o-1?" in json.dumps(body["messages"]) and "Let me look." in json.dumps(body["messages"])
    assert "It is lost." not in json.dumps(body["messages"])
    page = request_of(victor, story, seq).content.decode()
    assert "https://api.anthropic.com/v1/messages" in page and "Where is order o-1?" in page


def test_the_same_page_is_found_from_the_attempt_and_from_the_answer(victor: Client) -> None:
    story = support()
    by_attempt, by_answer = (body_of(victor, story, seq) for seq in (2, 3))
    assert by_attempt == by_answer
    assert "answered at" in request_of(victor, story, 2).content.decode()


def test_a_digest_that_is_another_is_said_and_one_that_is_the_same_too(victor: Client) -> None:
    import hashlib

    story = Conversation()
    story.asks()
    seq = story.answers(text("Hello."))
    page = request_of(victor, story, seq).content.decode()
    assert "not byte for byte what was sent" in page
    digest = hashlib.sha256(request_of(victor, story, seq, "?as=body").content).hexdigest()
    same = Conversation()
    same.asks(digest=digest)
    page = request_of(victor, same, same.last).content.decode()
    assert "Equal to what was sent" in page and "It has no answer in the journal." in page


def test_a_fallback_is_shown_as_it_was_asked(victor: Client) -> None:
    story = Conversation()
    story.asks()
    failed = story.fails("overloaded", code="overloaded", status=529)
    story.asks(FALLBACK)
    seq = story.answers(text("Hello."))
    assert body_of(victor, story, seq)["model"] == FALLBACK.partition(":")[2]
    assert body_of(victor, story, failed)["model"] == MODEL.partition(":")[2]
    assert "It failed at" in request_of(victor, story, failed).content.decode()


def test_the_curl_call_has_no_secret_and_is_one_word_for_a_shell(victor: Client, monkeypatch: Any) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-very-secret")
    story = Conversation(input='it\'s $HOME `id` "quoted" \\ ok')
    seq = story.answers(text("Hello."))
    page = request_of(victor, story, seq)
    assert "very-secret" not in page.content.decode()
    curl = page.context["page"].shown.curl
    given = shlex.split(curl.replace("\\\n", ""))
    assert given[:3] == ["curl", "-X", "POST"]
    assert given[3].partition("?")[0] == "https://api.anthropic.com/v1/messages"
    assert "x-api-key: $ANTHROPIC_API_KEY" in given and not any("content-length" in one for one in given)
    assert given[-2] == "--data-raw" and given[-1].encode() == request_of(victor, story, seq, "?as=body").content


def test_a_key_is_the_variable_that_the_loop_names() -> None:
    found = curl_of("POST", "$MY_GATEWAY/v1/chat", [("x-token", "(not shown)")], None, FALLBACK, {"api_key": "$MY_KEY"})
    assert '"authorization: Bearer $MY_KEY"' in found and '"$MY_GATEWAY/v1/chat"' in found and "x-token" not in found
    assert found.endswith("--data-binary @request.json")
    assert "$GROQ_API_KEY" in curl_of("POST", "https://x", [], "{}", "groq:llama", {})
    assert without_keys("https://me:pw@host/x?key=abc&v=1") == "https://host/x?key=$KEY&v=1"


def test_what_no_provider_was_asked_is_said_plainly(victor: Client) -> None:
    story = Story()
    story.write(Kind.ATTEMPT, {"attempt": 1, "source": "model"})
    seq = story.write(Kind.PLAN, {"seen": 1, "moves": [], "usage": {}}, actor="model")
    page = request_of(victor, story, seq)
    assert page.status_code == 200 and "cannot be recomputed" in page.content.decode()
    assert "not a provider" in page.content.decode()


def test_an_agent_of_another_library_shows_what_was_told(victor: Client) -> None:
    story = Story()
    body = {"attempt": 1, "source": "model", "model": MODEL, "digest": "ab" * 32, "size": 7}
    seq = story.write(Kind.ATTEMPT, body)
    page = words(request_of(victor, story, seq).content.decode())
    assert "makes its requests itself" in page and "ab" * 32 in page and MODEL in page


def test_an_entry_that_asked_nobody_is_not_found(victor: Client) -> None:
    story = Story()
    assert request_of(victor, story, story.call()).status_code == 404
    assert request_of(victor, story, story.plan()).status_code == 404


def test_markup_in_a_request_does_nothing(victor: Client) -> None:
    story = Conversation(input="<script>alert(1)</script>")
    seq = story.answers(text("Hello."))
    for query in ("", "?as=raw"):
        assert "<script>alert" not in request_of(victor, story, seq, query).content.decode()


def test_the_inspector_leads_there(victor: Client) -> None:
    story = support()
    for seq in (2, 3):
        assert f"{story.url}/entries/{seq}/request" in victor.get(f"{story.url}?seq={seq}").content.decode()
    assert "1,234 in" in words(victor.get(f"{story.url}?seq=3").content.decode())
