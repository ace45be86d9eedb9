"""The page of tokens and money."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client

from runs.access import set_scope
from runs.pages.money import dollars, exactly
from runs.pages.spending_page import scale, short
from tests.pages.test_chat import words

pytestmark = pytest.mark.django_db

INSERT = """
INSERT INTO runs_request_spent (run_id, seq, day, agent, release_id, model, lost, input_tokens, output_tokens,
                                cached_tokens, cost) VALUES (%s, %s, %s, %s, 'r', %s, %s, %s, %s, %s, %s)
"""


def spent(agent: str = "support", cost: str | None = "0.0123", ago: int = 0, **more: Any) -> None:
    given = {"model": "anthropic:claude-haiku-4-5", "lost": False, "tokens_in": 1_000, "tokens_out": 200, "cached": 900}
    given |= more
    day = datetime.now(UTC).date() - timedelta(days=ago)
    with connection.cursor() as cursor:
        cursor.execute(INSERT, [
            uuid.uuid4(), 3, day, agent, given["model"], given["lost"], given["tokens_in"], given["tokens_out"],
            given["cached"], cost,
        ])  # fmt: skip


def page_of(client: Client, query: str = "") -> str:
    html = client.get(f"/spending{query}").content.decode()
    return html[html.index('id="main"') : html.index("</main>")]


def test_tokens_and_money_are_added_up_by_agent_model_and_day(victor: Client) -> None:
    spent()
    spent(ago=1, cost="0.5")
    spent("triage", model="openai:gpt-5.2", cost="1")
    page = page_of(victor)
    said = words(page)
    assert (
        "$1.51" in said and "$1.5123" in page and "3,600" in said and "3,000 in, 2,700 of them cached; 600 out" in said
    )
    assert "every price is known" in said and said.index("triage") < said.index("support")
    assert 'href="/spending?agent=support' in page.replace('href="?', 'href="/spending?')
    assert "openai:gpt-5.2" in said and f"{datetime.now(UTC).date():%Y-%m-%d}" in said
    only = words(page_of(victor, "?agent=support"))
    assert "triage" not in only and "$0.512" in only


def test_what_nobody_knows_the_price_of_is_never_nothing(victor: Client) -> None:
    spent(cost=None)
    said = words(page_of(victor))
    assert "Cost Unknown and 1 request whose price nobody knows" in said and "1 unknown" in said and "0.00" not in said
    spent(cost="0.5")
    said = words(page_of_anew(victor, "?by=cost"))
    assert "0.50 and 1 request whose price nobody knows" in said and "0.50 + 1 unknown" in said
    assert "higher than it is drawn" in said


def page_of_anew(client: Client, query: str = "") -> str:
    from runs.pages.sharing import shared

    shared.clear()
    return page_of(client, query)


def test_lost_requests_stand_apart(victor: Client) -> None:
    spent()
    spent(lost=True, cost="0.0421")
    spent(lost=True, cost=None)
    said = words(page_of(victor))
    assert "may have cost up to $0.0421 more, and 1 nobody knows what" in said and "1 + 2 lost" in said
    assert "Answers 1 of models" in said


def test_a_function_has_no_model_and_no_price_to_be_unknown(victor: Client) -> None:
    spent(model="", cost="0")
    said = words(page_of(victor))
    assert "(a function)" in said and "unknown" not in said
    assert "1,200" in words(page_of_anew(victor, "?model=(a+function)"))


def test_nothing_spent_reads_as_nothing_asked(victor: Client) -> None:
    said = words(page_of(victor, "?days=7"))
    assert said.count("No model was asked in this time.") == 4 and "no request" in said


def test_older_days_are_only_in_a_longer_span(victor: Client) -> None:
    spent("old", ago=40)
    assert "old" not in words(page_of(victor)).split() and "old" in words(page_of(victor, "?days=90")).split()


def test_what_is_out_of_scope_is_not_added_up(victor: Client) -> None:
    spent("support")
    spent("secret-agent", cost="9")
    set_scope("victor", ["support"], actor="test")
    victor.force_login(User.objects.get(username="victor"))
    page = page_of(victor)
    assert "secret-agent" not in page and "9.0123" not in page and "0.0123" in page
    assert "No model was asked" in page_of(victor, "?agent=secret-agent")


def test_odd_addresses_are_read_as_the_usual_one(victor: Client) -> None:
    for query in ("?days=0", "?days=%D9%A7", "?days=999999", "?by=x", "?agent=%00"):
        assert victor.get(f"/spending{query}").status_code == 200, query


def test_money_shows_the_digits_that_say_something_and_all_of_them_in_a_title() -> None:
    amounts = [Decimal(text) for text in ("0", "1", "1234.5678", "0.0289145", "0.3", "0.000012", "12e3", "0.9996")]
    assert [dollars(amount) for amount in amounts] == [
        "$0.00", "$1.00", "$1,234.57", "$0.0289", "$0.30", "$0.000012", "$12,000.00", "$1.00",
    ]  # fmt: skip
    assert [exactly(amount) for amount in amounts] == [
        "$0.00", "$1.00", "$1,234.5678", "$0.0289145", "$0.30", "$0.000012", "$12,000.00", "$0.9996",
    ]  # fmt: skip


def test_axes_have_round_numbers() -> None:
    assert [scale(most) for most in (3, 7.4, 100, 0.02)] == [3.0, 7.5, 150.0, pytest.approx(0.03)]
    assert [short(value, "tokens") for value in (0, 950, 1_500, 2_000_000)] == ["0", "950", "1.5k", "2M"]
    assert [short(value, "cost") for value in (0, 0.0205, 0.5)] == ["$0", "$0.0205", "$0.50"]


def test_there_is_no_axis_of_nothing(victor: Client) -> None:
    assert '<svg class="chart' not in page_of(victor)
    spent(cost="0.0")
    page = page_of_anew(victor, "?by=cost")
    assert '<svg class="chart' not in page and "Nothing was spent in this time." in page
    spent(cost=None)
    page = page_of_anew(victor, "?by=cost")
    assert page.count('class="g"') == 1 and "c-unknown" in page
    spent(cost="0.0289145")
    page = page_of_anew(victor, "?by=cost")
    assert page.count('class="g"') == 4 and '<span title="$0.0289145">$0.0289</span>' in page
