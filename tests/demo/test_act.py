from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.rig.ledger import Ledger

REFUND = {"order_id": "o-7", "amount_cents": 600}


def post(ledger: Ledger, path: str, body: Any, *, key: str = "", reference: str = "") -> tuple[int, Any]:
    headers = {"Idempotency-Key": key} if key else {}
    return ledger.send("POST", path, body, headers | ({"X-Reference": reference} if reference else {}))


def test_the_same_key_and_arguments_get_the_first_answer_again(ledger: Ledger) -> None:
    first_status, first = post(ledger, "/refund", REFUND, key="run:1")
    again_status, again = post(ledger, "/refund", dict(reversed(REFUND.items())), key="run:1")
    assert (first_status, again_status) == (200, 200)
    assert first.pop("replayed") is False
    assert again.pop("replayed") is True
    assert first == again
    assert (ledger.acted("run:1"), ledger.replays("run:1")) == (1, 1)


@pytest.mark.parametrize(
    ("path", "body"),
    [("/refund", {**REFUND, "amount_cents": 601}), ("/charge", REFUND), ("/mail", {"to": "a@b.example"})],
)
def test_the_same_key_for_something_else_is_a_conflict(ledger: Ledger, path: str, body: Any) -> None:
    post(ledger, "/refund", REFUND, key="run:1")
    status, answer = post(ledger, path, body, key="run:1")
    assert (status, answer) == (409, {"error": "This key was used before with other arguments."})
    assert [effect["action"] for effect in ledger.effects()] == ["refund"]


def test_twenty_at_once_under_one_key_are_one_effect(ledger: Ledger) -> None:
    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(lambda _: post(ledger, "/refund", REFUND, key="run:1"), range(20)))
    assert {status for status, _ in answers} == {200}
    assert len({answer["id"] for _, answer in answers}) == 1
    assert [answer["replayed"] for _, answer in answers].count(False) == 1
    assert (ledger.acted("run:1"), ledger.replays("run:1")) == (1, 19)


def test_without_a_key_it_acts_every_time_and_the_reference_names_the_effect(ledger: Ledger) -> None:
    for _ in range(2):
        post(ledger, "/mail", {"to": "a@b.example", "subject": "Hello", "body": ""}, reference="run:2")
    assert ledger.acted("run:2") == 2
    assert ledger.status("run:2") is None, "a reference cannot be asked for"


def test_a_transfer_can_be_asked_for_by_its_key_but_acts_each_time(ledger: Ledger) -> None:
    _, first = post(ledger, "/transfer", {"to": "x", "amount_cents": 5}, key="run:3")
    post(ledger, "/transfer", {"to": "x", "amount_cents": 5}, key="run:3")
    assert ledger.acted("run:3") == 2
    assert ledger.status("run:3") == {name: value for name, value in first.items() if name != "replayed"}


def test_the_status_of_an_unknown_key_is_404(ledger: Ledger) -> None:
    assert ledger.send("GET", "/status/nobody") == (404, {"found": False})


@pytest.mark.parametrize(
    "body",
    [
        {"order_id": "o-1000", "amount_cents": 1},
        {"order_id": "o-7", "amount_cents": 0},
        {"order_id": "o-7", "amount_cents": 1_000_000},
        {"order_id": "o-7", "amount_cents": "600"},
        ["o-7"],
        None,
    ],
)
def test_a_refusal_does_not_act(ledger: Ledger, body: Any) -> None:
    assert post(ledger, "/refund", body, key="run:4")[0] == 422
    assert ledger.effects() == []
    assert ledger.status("run:4") is None


def test_an_effect_survives_kill_9_of_the_service(ledger: Ledger) -> None:
    keys = [f"run:{step}" for step in range(10)]
    for key in keys:
        post(ledger, "/refund", REFUND, key=key)
    ledger.fault("refund", "fail", times=1)
    ledger.kill()
    ledger.start()
    assert [effect["key"] for effect in ledger.effects()] == keys
    assert len(ledger.faults()) == 1
    ledger.clear_faults()
    assert post(ledger, "/refund", REFUND, key="run:0")[1]["replayed"] is True


def test_kill_9_amid_refunds_loses_none_that_was_acknowledged(ledger: Ledger) -> None:
    acknowledged: list[str] = []

    def refund(number: int) -> None:
        try:
            if post(ledger, "/refund", REFUND, key=f"run:{number}")[0] == 200:
                acknowledged.append(f"run:{number}")
        except OSError:
            pass  # killed before it answered: either is right
        if number == 40:
            ledger.kill()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(refund, range(80)))
    ledger.start()
    assert len(acknowledged) >= 20
    assert all(ledger.acted(key) == 1 and ledger.status(key) for key in acknowledged)
