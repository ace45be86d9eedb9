"""The support agent in memory: the real engine and the real client, over HTTP with the scripted model."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from demo import model
from demo.agents.support import support
from demo.payments.orders import FIRST, LAST, history_of, order_named
from demo.support_model import quickly
from runs import testing
from runs.sdk import PermanentError
from tests.rig.providers import Providers
from tests.rig.providers import providers as providers

TODAY = datetime.now(UTC).date()


def look_up(order_id: str) -> dict[str, Any]:
    order = order_named(order_id)
    if order is None:
        raise PermanentError("There is no such order.")
    return order


TOOLS: dict[str, Any] = {
    "look_up_order": look_up,
    "order_history": lambda order_id: history_of(order_id, TODAY),
    "refund": lambda order_id, amount_cents, reason: {
        "id": "refund-1", "order_id": order_id, "amount_cents": amount_cents, "at": "2027-01-01",
    },
    "send_mail": {"id": "mail-1", "to": "mei@example.com", "at": "2027-01-01"},
    "add_note": {"id": "note-1", "ticket": "t", "at": "2027-01-01"},
}  # fmt: skip


@pytest.fixture(autouse=True)
def scripted(providers: Providers, monkeypatch: pytest.MonkeyPatch) -> Iterator[Providers]:
    providers.script(model.SCRIPTED, quickly)
    monkeypatch.setenv(model.URL, providers.anthropic_url)
    monkeypatch.setenv(model.KEY, "scripted")
    yield providers


def ticket(text: str, order_id: str) -> dict[str, Any]:
    order = order_named(order_id)
    assert order is not None
    return {"customer": order["email"], "order_id": order_id, "text": text}


def test_a_small_refund() -> None:
    order = order_named("o-12")
    run = testing.run(support, ticket("The first thing in it came broken.", "o-12"), tools=TOOLS)
    print(run.story, run.reason)
    for e in run.journal: print(e.seq, e.kind, str(e.body)[:600])
    assert run.result["refunded_cents"] == 4584
