import time
import urllib.error
import urllib.request
from typing import Any

import pytest

from tests.rig.ledger import Ledger, wait_until

MAIL = {"to": "a@b.example", "subject": "Hello", "body": ""}
KEY = {"Idempotency-Key": "run:1"}


def mail(ledger: Ledger, **options: Any) -> tuple[int, Any]:
    return ledger.send("POST", "/mail", MAIL, KEY, **options)


def test_fail_answers_500_and_does_not_act(ledger: Ledger) -> None:
    ledger.fault("mail", "fail", times=2)
    assert [mail(ledger)[0] for _ in range(3)] == [500, 500, 200]
    assert ledger.acted("run:1") == 1


def test_reject_is_a_definite_refusal(ledger: Ledger) -> None:
    ledger.fault("mail", "reject", times=1)
    assert mail(ledger)[0] == 422
    assert ledger.acted("run:1") == 0


def test_rate_limit_says_when_to_come_back(ledger: Ledger) -> None:
    ledger.fault("mail", "rate_limit", times=1, retry_after=30)
    with pytest.raises(urllib.error.HTTPError) as refusal:
        urllib.request.urlopen(urllib.request.Request(ledger.url + "/mail", b"{}"))
    with refusal.value as answer:
        assert (answer.code, answer.headers["Retry-After"]) == (429, "30")
    assert ledger.effects() == []


def test_delay_acts_later_although_the_caller_has_gone(ledger: Ledger) -> None:
    ledger.fault("mail", "delay", times=1, seconds=2)
    with pytest.raises(OSError, match="timed out"):
        mail(ledger, timeout=0.1)
    assert ledger.acted("run:1") == 0
    wait_until(lambda: ledger.acted("run:1") == 1, "the delayed mail acts")


def test_hang_acts_and_never_answers(ledger: Ledger) -> None:
    ledger.fault("mail", "hang", times=1, seconds=30)
    with pytest.raises(OSError, match="timed out"):
        mail(ledger, timeout=0.3)
    wait_until(lambda: ledger.acted("run:1") == 1, "it acts")
    ledger.fault("mail", "hang", times=1, seconds=0.2)
    with pytest.raises(OSError, match="closed connection"):
        mail(ledger)


def test_late_acts_at_once_and_answers_after(ledger: Ledger) -> None:
    ledger.fault("mail", "late", times=1, seconds=0.3)
    began = time.monotonic()
    assert mail(ledger)[0] == 200
    assert time.monotonic() - began >= 0.3
    ledger.fault("mail", "late", times=1, seconds=30)
    with pytest.raises(OSError, match="timed out"):
        mail(ledger, timeout=0.3)
    wait_until(lambda: ledger.replays("run:1") == 1, "it is asked again")


def test_drop_acts_and_cuts_the_connection(ledger: Ledger) -> None:
    ledger.fault("mail", "drop", times=1)
    with pytest.raises(OSError, match="closed connection"):
        mail(ledger)
    assert ledger.acted("run:1") == 1
    assert mail(ledger)[1]["replayed"] is True


def test_payload_answers_whatever_was_ordered(ledger: Ledger) -> None:
    ledger.fault("mail", "payload", times=1, body={"odd": [1, None]})
    ledger.fault("mail", "payload", times=1, size=50_000_000)
    assert mail(ledger) == (200, {"odd": [1, None]})
    assert len(mail(ledger)[1]["payload"]) == 50_000_000
    assert ledger.acted("run:1") == 1


def test_a_fault_may_be_for_one_key_only(ledger: Ledger) -> None:
    ledger.fault("*", "fail", key="run:2")
    assert mail(ledger)[0] == 200
    assert ledger.send("POST", "/mail", MAIL, {"X-Reference": "run:2"})[0] == 500


def test_every_action_means_no_look_up_unless_it_is_named(ledger: Ledger) -> None:
    ledger.fault("*", "fail")
    assert ledger.send("GET", "/orders/o-7")[0] == 200
    assert ledger.send("GET", "/status/run:1")[0] == 404
    ledger.fault("status", "fail")
    assert ledger.send("GET", "/status/run:1")[0] == 500


def test_faults_stay_until_removed(ledger: Ledger) -> None:
    ledger.fault("mail", "fail")
    assert [mail(ledger)[0] for _ in range(3)] == [500] * 3
    assert [(fault["fault"], fault["remaining"]) for fault in ledger.faults()] == [("fail", None)]
    ledger.clear_faults()
    assert mail(ledger)[0] == 200


@pytest.mark.parametrize(
    "wanted",
    [
        [],
        {"action": "mail"},
        {"action": "mail", "fault": "explode"},
        {"action": "fly", "fault": "fail"},
        {"fault": "fail", "times": 0},
        {"fault": "fail", "seconds": "long"},
        {"fault": "fail", "for": 3},
        {"fault": "payload", "size": -1},
    ],
)
def test_a_fault_that_makes_no_sense_is_refused(ledger: Ledger, wanted: Any) -> None:
    assert ledger.send("POST", "/faults", wanted)[0] == 422
    assert ledger.faults() == []
