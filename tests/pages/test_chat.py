"""A run read as a conversation."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client

from journal.encoding import Pointer
from journal.entries import Kind
from journal.payloads import payload_store
from runs.models import Status
from runs.pages.said import blocks_of
from tests.pages.conversations import FALLBACK, MODEL, PNG, Conversation, called, support, text, thinking
from tests.pages.journals import Story, in_doubt, session

pytestmark = pytest.mark.django_db


def page_of(client: Client, story: Story, **more: object) -> str:
    """The conversation alone."""
    query = "".join(f"&{name}={value}" for name, value in more.items())
    page = client.get(f"{story.url}?view=chat{query}").content.decode()
    return page[page.index('id="chat"') : page.index('id="inspector"')]


def turn_of(page: str, seq: int) -> str:
    begin = page.index(f'id="turn-{seq}"')
    end = page.find('class="turn"', begin + 10)
    return page[begin : end if end > 0 else None]


def words(html: str) -> str:
    """As somebody reads it."""
    return " ".join(re.sub(r"<[^>]*>", " ", html).split())


def test_the_turns_stand_in_order_and_the_address_holds_the_view(victor: Client) -> None:
    story = support()
    page = page_of(victor, story)
    said = words(page)
    at = [said.index(part) for part in (
        "Where is my order", "Let me look.", "lookup_order", "the arguments were refused", "overloaded",
        "I ask for the refund", "ada rejected it", "Half is fine", "was lost with its worker", "12 older results",
    )]  # fmt: skip
    assert at == sorted(at)
    assert 'href="?view=chat&amp;seq=1"' in page
    whole = victor.get(f"{story.url}?view=chat").content.decode()
    assert f"/live/runs/{story.run.id}?view=chat" in whole and 'id="timeline"' not in whole
    assert 'id="chat"' not in victor.get(story.url).content.decode()


def test_a_models_turn_has_its_text_its_thoughts_folded_and_its_bill(victor: Client) -> None:
    story = Conversation()
    seq = story.answers(thinking("I should look"), text("Let me look."))
    turn = turn_of(page_of(victor, story), seq)
    assert "<summary>" in turn[: turn.index("I should look")] and MODEL.partition(":")[2] in turn
    assert "1,234 in, 900 of them cached; 210 out" in words(turn) and "$0.0123" in turn and "2.1 s" in turn


def test_a_price_that_nobody_knows_is_not_nothing(victor: Client) -> None:
    story = Conversation()
    seq = story.answers(text("Hello."), cost=None)
    turn = turn_of(page_of(victor, story), seq)
    assert "price unknown" in turn and "$0" not in turn


def test_a_call_tells_its_arguments_and_what_came_of_it(victor: Client) -> None:
    story = Conversation()
    story.answers(called("lookup_order", order="o-1"))
    seq = story.call("lookup_order", order="o-1")
    assert "Under way" not in turn_of(page_of(victor, story), seq)
    story.now_is(Status.RUNNING, session=session("w1"))
    assert "Under way" in turn_of(page_of(victor, story), seq)
    at = story.result({"state": "lost"})
    turn = turn_of(page_of(victor, story), seq)
    assert "Done" in turn and '"o-1"' in words(turn).replace("&quot;", '"') and f"seq {at}" in turn and "lost" in turn


def test_a_call_that_waits_for_somebody_leads_to_its_item(victor: Client) -> None:
    story = Conversation()
    story.answers(called("refund", amount_cents=1))
    seq = story.call("refund", gate="approval", amount_cents=1)
    story.now_is(Status.AWAITING_APPROVAL, "refund waits")
    turn = turn_of(page_of(victor, story), seq)
    assert "Waits for approval" in turn and f"/inbox/{story.url.rpartition('/')[2]}/{seq}" in turn
    doubt, at = in_doubt()
    turn = turn_of(page_of(victor, doubt), at)
    assert "No result" in turn and f"/inbox/{doubt.url.rpartition('/')[2]}/{at}" in turn


def test_a_rejection_tells_who_and_why(victor: Client) -> None:
    story = Conversation()
    seq = story.call("refund", gate="approval", amount_cents=1)
    story.result(None, "denied", error="too much", source="approval")
    turn = words(turn_of(page_of(victor, story), seq))
    assert "rejected it: too much." in turn and "Rejected" in turn


def test_what_the_loop_sent_back_shows_what_the_model_had_written(victor: Client) -> None:
    story = Conversation()
    reply = {"id": "t1", "tool": "refund", "outcome": "retried", "cause": "arguments", "content": "not an integer"}
    seq = story.answers(called("refund", "t1", amount_cents="all of it"), moves=[], replies=[reply])
    again = story.answers(text("{}"), feedback="Answer with the fields of Refund.", moves=[])
    page = page_of(victor, story)
    turn = words(turn_of(page, seq))
    assert "the arguments were refused" in turn and "all of it" in turn and "not an integer" in turn
    assert "Answer with the fields" in turn_of(page, again)


def test_a_failed_request_tells_code_and_status_and_which_model_was_asked_next(victor: Client) -> None:
    story = Conversation()
    story.asks()
    failed = story.fails("the provider is overloaded", code="overloaded", status=529)
    assert "It is asked again at" in turn_of(page_of(victor, story), failed)
    story.asks(FALLBACK)
    turn = words(turn_of(page_of(victor, story), failed))
    assert f"{MODEL} answered 529 (overloaded)" in turn and f"Then {FALLBACK} was asked." in turn


def test_a_lost_request_says_what_it_may_have_cost(victor: Client) -> None:
    story = Conversation()
    first = story.asks()
    seq = story.asks(lost={"seq": first, "input_tokens": 4_000, "output_tokens": 2_048, "cost": None})
    turn = words(turn_of(page_of(victor, story), seq))
    assert "may have cost an unknown amount" in turn and "about 4000 tokens in, 2048 out at most" in turn


def test_markup_in_a_models_text_does_nothing(victor: Client) -> None:
    story = Conversation(input="<img src=x onerror=alert(1)>")
    seq = story.answers(text("<script>alert(1)</script>\n```html\n<b>bold</b>\n```\n\u202etxet"))
    page = page_of(victor, story)
    assert "<script>alert" not in page and "<b>bold" not in page and "<img src=x" not in page
    turn = turn_of(page, seq)
    assert "&lt;b&gt;bold&lt;/b&gt;" in turn and "turn-code" in turn and "\\u202e" in turn


def test_code_is_what_stands_between_fences() -> None:
    found = blocks_of("a\n\n```py\nx = 1\n```\nb\n~~~\n```\n~~~\n```\nnever closed")
    assert [(b.text, b.code, b.language) for b in found] == [
        ("a", False, ""), ("x = 1", True, "py"), ("b", False, ""), ("```", True, ""), ("never closed", True, ""),
    ]  # fmt: skip


def test_a_large_answer_is_read_from_its_payload(victor: Client) -> None:
    story = Conversation()
    response = {"parts": [text("word " * 10_000)], "kind": "response"}
    seq = story.answers(text("x"), response=payload_store().put(story.run.id, response))
    assert "word word" in turn_of(page_of(victor, story), seq)
    gone = Pointer("file:///nowhere/" + "0" * 64, "0" * 64, 10, "application/vnd.holdfast+json")
    seq = story.answers(text("x"), response=gone, thought="in short")
    turn = turn_of(page_of(victor, story), seq)
    assert "in short" in turn and "cannot be read just now" in turn and f"/entries/{seq}/payloads/" in turn


def test_a_picture_is_seen_and_nothing_else_is_sent_as_one(victor: Client) -> None:
    story = Conversation()
    picture, page = payload_store().put(story.run.id, PNG), payload_store().put(story.run.id, b"<svg onload=alert(1)>")
    story.call("chart")
    seq = story.result({"chart": picture, "page": page})
    turn = page_of(victor, story)
    shown = f"{story.url}/entries/{seq}/payloads/"
    assert f'src="{shown}{picture.sha256}?shown=picture"' in turn and f'src="{shown}{page.sha256}' not in turn
    answer = victor.get(f"{shown}{picture.sha256}?shown=picture")
    assert answer["Content-Type"] == "image/png" and answer.content == PNG
    answer = victor.get(f"{shown}{page.sha256}?shown=picture")
    assert answer["Content-Type"] == "application/octet-stream" and "attachment" in answer["Content-Disposition"]
    story.call("chart")
    story.result(PNG)
    assert "data:image/png;base64," in page_of(victor, story)


def test_flows_and_scripts_are_told_by_their_calls(victor: Client) -> None:
    story = Story()
    silent = story.plan()
    thought = story.plan(thought="Refund the order")
    call = story.call(order_id="o-1")
    asked = story.ask("Skip it?")
    story.write(Kind.ANSWER, {"value": "repair"}, step=story.step, settles=story.step, actor="olga")
    child = story.spawn()
    page = page_of(victor, story)
    assert f'id="turn-{silent}"' not in page and "Refund the order" in turn_of(page, thought)
    assert "o-1" in turn_of(page, call) and "olga" in turn_of(page, asked)
    assert child.url in page


def test_an_erased_turn_says_so(victor: Client) -> None:
    story = Story()
    seq = story.write(Kind.PLAN, {"$": "erased", "digest": "ab" * 32})
    assert "its content was erased" in turn_of(page_of(victor, story), seq)


def test_a_long_conversation_is_read_in_windows(victor: Client) -> None:
    story = Story()
    for n in range(260):
        story.write(Kind.SIGNAL, {"name": "message", "payload": f"number {n}"}, actor="olga")
    page = page_of(victor, story)
    assert "number 259" in page and "number 10<" not in page and "Earlier turns" in page
    earlier = page_of(victor, story, after=0)
    assert "number 10<" in earlier and "number 259" not in earlier and "Later turns" in earlier


def test_how_it_ended_is_the_last_turn(victor: Client) -> None:
    story = Conversation()
    story.answers(text("All done."))
    story.done(result="Your money is on its way.")
    page = page_of(victor, story.now_is(Status.DONE))
    assert words(page[page.rindex('class="turn"') :]).count("Your money is on its way.") == 1


def arrives(story: Conversation, attempt: int, said: str, thought: str = "") -> None:
    from django.db import connection

    from runs.loops.under_way import tell

    with connection.cursor() as cursor:
        tell(cursor, story.run.id, 1, attempt, said, thought)


def test_what_has_arrived_of_an_answer_is_shown_until_it_is_there(victor: Client) -> None:
    story = Conversation()
    story.now_is(Status.RUNNING, session=session("w1"))
    attempt = story.asks()
    assert "Nothing has arrived yet." in page_of(victor, story)
    arrives(story, attempt, "Let me lo", "The <b>customer</b>")
    for page in (page_of(victor, story), victor.get(story.url).content.decode()):
        assert "Let me lo" in page and "The &lt;b&gt;customer" in page and "not in the journal yet" in page
    story.answers(text("Let me look."))
    page = page_of(victor, story)
    assert "not in the journal yet" not in page and page.count("Let me lo") == 1


def test_what_a_lost_worker_heard_is_not_shown_for_its_successor(victor: Client) -> None:
    story = Conversation()
    arrives(story, story.asks(), "Of the lost one")
    story.now_is(Status.RUNNING, session=session("w1"))
    assert "Of the lost one" in page_of(victor, story)
    story.asks(lost={"seq": 2})
    assert "Of the lost one" not in page_of(victor, story)


def test_a_stateless_run_has_no_conversation(victor: Client) -> None:
    any_story: Any = Story()
    any_story.now_is(Status.DONE, input=b"null", ending=b'{"result": 1}')
    assert victor.get(f"{any_story.url}?view=chat").status_code == 200


def test_the_timeline_tells_what_each_answer_used_and_what_was_sent_back(victor: Client) -> None:
    story = support()
    page = victor.get(story.url).content.decode()
    said = words(page[page.index('id="timeline"') : page.index('id="inspector"')])
    assert "1,234 tokens in, 900 of them cached; 210 out; $0.0123" in said and "sent back: refund" in said
    assert f"asks {MODEL}" in said and "overloaded: the provider is overloaded" in said
    assert "12 older results are not shown to the model any more" in said
    assert "The model was told of it at seq" in said and "no step has waited for it" not in said


def test_a_run_says_that_the_price_of_a_request_is_unknown(victor: Client) -> None:
    story = Conversation()
    story.answers(text("Hello."), cost=None)
    facts = victor.get(story.url).content.decode()
    assert "cost unknown" in words(facts) and "$0" not in words(facts)
    story.answers(text("Hello."))
    assert "$0.0123 and 1 request of unknown price" in words(victor.get(story.url).content.decode())


def test_a_word_that_came_while_it_was_answered_stands_behind_the_answer_and_its_calls(victor: Client) -> None:
    story = Conversation()
    asked = story.asks()
    early = story.write(Kind.SIGNAL, {"name": "message", "payload": "Hurry"}, actor="olga")
    page = page_of(victor, story)
    assert "the model is told of it with the next request" in words(turn_of(page, early))
    answer = story.answers(called("lookup_order", order="o-1"))
    assert early > asked and early < answer
    call = story.call("lookup_order", order="o-1")
    story.result({"state": "lost"})
    second = story.answers(text("It is lost."))
    page = page_of(victor, story)
    at = [page.index(f'id="turn-{seq}"') for seq in (answer, call, early, second)]
    assert at == sorted(at) and "with the next request" not in page
    rows = victor.get(story.url).content.decode()
    row = rows[rows.index(f'id="line-{early}"') :]
    assert f"The model was told of it at seq {second - 1}" in words(row[: row.index("</li>")])


def test_a_word_that_the_run_did_not_wait_for_says_that_its_model_never_heard_it(victor: Client) -> None:
    story = Conversation()
    story.answers(text("Done."))
    story.write(Kind.SIGNAL, {"name": "message", "payload": "Wait"}, actor="olga")
    story.done(result="Done.")
    story.now_is(Status.DONE)
    assert "the model was not told of it" in page_of(victor, story)
    assert "ended before its model was told of it" in victor.get(story.url).content.decode()


def test_a_request_says_whom_it_asks_and_again_after_what(victor: Client) -> None:
    story = Conversation()
    first = story.asks()
    story.fails("too many", code="rate_limited", status=429)
    again = story.asks()
    story.fails("busy", code="overloaded", status=529)
    other = story.asks(FALLBACK)
    page = victor.get(story.url).content.decode()

    def row(seq: int) -> str:
        at = page.index(f'id="row-{seq}"')
        return words(page[at : page.index("</a>", at)])

    assert f"asks {MODEL}" in row(first) and "attempt 1" not in row(first) and "source" not in row(first)
    assert f"again, after too many requests: asks {MODEL}" in row(again)
    assert f"after an overload: asks {FALLBACK}" in row(other)


def test_an_object_is_a_table_whose_text_reads_as_text_with_its_json_behind_it(victor: Client) -> None:
    story = Conversation(input={"customer": "Ada", "vip": True, "notes": []})
    story.answers(called("send_mail", to="p@x.example", body="Dear Paolo,\n\nhalf is <b>fine</b>."))
    seq = story.call("send_mail", to="p@x.example", body="Dear Paolo,\n\nhalf is <b>fine</b>.", copies=["a", "b"], n=3)
    story.result({"id": "m-1", "queued": True, "note": ""})
    page = page_of(victor, story)
    turn = turn_of(page, seq)
    assert '<dt>to</dt><dd><p class="turn-text" dir="auto">p@x.example</p>' in turn
    assert "Dear Paolo,\n\nhalf is &lt;b&gt;fine&lt;/b&gt;." in turn and '<p class="turn-word">3</p>' in turn
    assert turn.count("<span>JSON</span>") == 2 and "copies in Arguments of seq" in turn
    assert '<p class="turn-word">true</p>' in turn and '<p class="turn-word">&#x27;&#x27;</p>' in turn
    assert "<dt>customer</dt>" in turn_of(page, 1)


def test_what_is_mostly_nested_or_large_is_json(victor: Client) -> None:
    story = Conversation()
    nested = story.call("plan", days=[1, 2], people={"a": 1}, n=1)
    large = story.call("fill", **{f"cell_{n}": n for n in range(40)})
    page = page_of(victor, story)
    assert "turn-fields" not in turn_of(page, nested) and "turn-fields" not in turn_of(page, large)


def test_a_new_plan_is_one_line_that_unfolds(victor: Client) -> None:
    story = Conversation()
    args = {"done": ["look"], "next": ["write to Paolo", "close"], "decided": ["half is enough"]}
    noted = {"id": "t1", "tool": "update_plan", "outcome": "answered", "content": "The plan is noted."}
    seq = story.answers(called("update_plan", "t1", **args), moves=[], replies=[noted])
    raw = called("update_plan", "t2") | {"args": '{"done": ["all"], "next": [], "decided": []}'}
    last = story.answers(raw, moves=[], replies=[noted | {"id": "t2"}])
    page = page_of(victor, story)
    turn = words(turn_of(page, seq))
    assert "updated its plan: now write to Paolo" in turn and "decided half is enough" in turn
    assert "What the model wrote" not in turn and "taken" not in turn and "turn-reply" not in turn_of(page, seq)
    assert "updated its plan done: all" in words(turn_of(page, last))


def test_an_answer_whose_moves_or_replies_lie_outside_is_shown_all_the_same(victor: Client) -> None:
    story = Conversation()
    outside = {name: payload_store().put(story.run.id, [{"finish": "word " * 10_000}]) for name in ("moves", "replies")}
    plan = payload_store().put(story.run.id, ["word " * 10_000])
    seq = story.answers(text("x"), **outside, plan=plan, feedback=plan, thought=plan, response=plan)
    for place in ("", "?view=chat", f"?seq={seq}", f"?at={seq}", "/journal"):
        assert victor.get(f"{story.url}{place}").status_code == 200, place
