import urllib.request

import pytest

from demo.payments.orders import LAST, order_named
from tests.rig.ledger import Ledger


def test_every_order_adds_up_and_stays_the_same() -> None:
    for number in range(1, LAST + 1):
        order = order_named(f"o-{number}")
        assert order == order_named(f"o-{number}")
        assert order is not None and 500 <= order["total_cents"] <= 30_000
        assert sum(item["price_cents"] for item in order["items"]) == order["total_cents"]


def test_orders_fall_on_both_sides_of_the_approval_limit() -> None:
    totals = [order["total_cents"] for number in range(1, 30) if (order := order_named(f"o-{number}"))]
    assert min(totals) <= 5_000 < max(totals)


@pytest.mark.parametrize("name", ["o-0", "o-1000", "o-01", "7", "o-7 "])
def test_other_names_are_no_orders(name: str) -> None:
    assert order_named(name) is None


def test_an_order_is_served(ledger: Ledger) -> None:
    assert ledger.get("/orders/o-7") == order_named("o-7")
    assert ledger.send("GET", "/orders/o-1000")[0] == 404


def test_effects_are_paged(ledger: Ledger) -> None:
    for number in range(5):
        ledger.send("POST", "/mail", {"to": f"{number}@b.example"})
    first = ledger.get("/effects?limit=3")
    rest = ledger.get(f"/effects?limit=3&after={first['next_after']}")
    assert first["total"] == 5
    assert [effect["args"]["to"][0] for effect in first["effects"] + rest["effects"]] == list("01234")
    assert rest["next_after"] is None


def test_named_counters_count(ledger: Ledger) -> None:
    assert ledger.counted("model") == 0
    ledger.send("POST", "/count/model")
    ledger.send("POST", "/count/model")
    assert ledger.counted("model") == 2


def test_the_page_shows_the_ledger_and_markup_in_it_is_inert(ledger: Ledger) -> None:
    ledger.send("POST", "/mail", {"to": "<img src=x onerror=alert(1)>@b.example"}, {"Idempotency-Key": "<script>"})
    ledger.fault("refund", "drop", times=3)
    with urllib.request.urlopen(ledger.url + "/") as answer:
        html = answer.read().decode()
        assert answer.headers["Content-Security-Policy"].startswith("default-src 'none'; style-src 'self'")
    assert "&lt;script&gt;" in html and "<script" not in html and "<img" not in html
    assert "<td>drop</td>" in html


def test_unknown_addresses_and_methods_are_said_so(ledger: Ledger) -> None:
    assert ledger.send("GET", "/nowhere")[0] == 404
    assert ledger.send("GET", "/refund")[0] == 405
