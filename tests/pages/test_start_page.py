"""A run is started by a form made from what its agent takes."""

import datetime
import re
import uuid
from decimal import Decimal
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from pydantic import BaseModel

from journal.entries import Kind
from journal.read import read_entries
from runs.models import AgentScope, AuditRecord, Release, Run
from runs.registry import announce_one
from runs.sdk import Agent, Finish
from tests.pages.conftest import signed_in
from tests.pages.journals import session

pytestmark = pytest.mark.django_db

TAKES = {
    "type": "object",
    "properties": {
        "order_id": {"type": "string", "pattern": "^o-", "title": "Order"},
        "amount_cents": {"type": "integer", "default": 5},
        "card": {"type": "string", "writeOnly": True},
    },
    "required": ["order_id"],
}
START = "/agents/payer/start"


def release(version: str = "4", takes: Any = TAKES, name: str = "payer", served: bool = True) -> Release:
    content = {"agent": name, "version": version, "tools": [], "driver": "flow"} | ({"input": takes} if takes else {})
    made = Release.objects.create(id=uuid.uuid4().hex * 2, agent=name, version=version, content=content)
    if served:
        session(f"w{version}", serves=[made.id])
    return made


def typed(client: Client, address: str = START, **more: str) -> dict[str, str]:
    """What the form holds, with an order."""
    page = client.get(address).content.decode()
    key = re.findall(r'name="request_key" value="([^"]+)"', page)[0]
    chosen = re.findall(r'<option value="([0-9a-f]{64})" selected', page) or re.findall(r'value="([0-9a-f]{64})"', page)
    return {"request_key": key, "release": chosen[0], "labels": "", "priority": "0"} | {
        "input/order_id": "o-1", "input/amount_cents": "7",
    } | more  # fmt: skip


def start_of(run: Run) -> dict[str, Any]:
    return read_entries(None, run.id, kinds=[Kind.START])[0].body


def test_the_form_is_made_from_what_the_agent_takes(olga: Client) -> None:
    release()
    page = olga.get(START).content.decode()
    for part in ("Start a run of payer?", 'name="input/order_id"', "Order", 'value="5"', 'type="password"',
                 "served by 1 worker", "Sent twice, it starts one run."):  # fmt: skip
        assert part in page, part


def test_what_is_needed_comes_first_in_the_order_that_was_declared(olga: Client) -> None:
    named = {name: {"type": "string"} for name in ("order_id", "to", "a")}
    release(takes={"type": "object", "properties": named, "required": ["order_id", "to"]})
    page = olga.get(START).content.decode()
    assert re.findall(r'name="input/(\w+)"', page) == ["order_id", "to", "a"]


class Transfer(BaseModel):
    to: str
    memo_of_the_transfer: str = ""
    amount: Decimal
    at: datetime.date | None = None


def test_fields_stand_as_the_agents_code_declares_them_optional_ones_too(olga: Client) -> None:
    made = announce_one(Agent("mover", "1", decide=lambda state: Finish(1), input=Transfer))
    session("w1", serves=[made.id])
    page = olga.get("/agents/mover/start").content.decode()
    assert re.findall(r'name="input/(\w+)"', page) == ["to", "memo_of_the_transfer", "amount", "at"]
    told = olga.get("/agents/mover").content.decode()
    assert re.findall(r'scope="row" class="mono">([a-z_]+)', told) == list(Transfer.model_fields)


def test_a_run_is_started_with_what_was_typed(olga: Client) -> None:
    made = release()
    given = typed(olga, labels="team:a\nticket: 9\n", priority="3")
    answer = olga.post(START, given)
    run = Run.objects.get()
    assert answer.status_code == 302 and answer["Location"].startswith("/runs/r-")
    assert (run.release_id, run.labels, run.priority) == (made.id, {"team": "a", "ticket": "9"}, 3)
    entry = read_entries(None, run.id)[0]
    assert entry.actor == "olga" and entry.body["input"] == {"order_id": "o-1", "amount_cents": 7}
    assert AuditRecord.objects.get(act="run.start").actor == "olga"


def test_a_double_click_and_a_resubmit_start_one_run(olga: Client) -> None:
    release()
    given = typed(olga)
    assert len({olga.post(START, given)["Location"] for _ in range(3)}) == 1
    assert Run.objects.count() == 1


def test_the_same_form_with_other_content_starts_nothing_until_it_is_sent_again(olga: Client) -> None:
    release()
    given = typed(olga)
    first = olga.post(START, given)["Location"]
    late = olga.post(START, given | {"input/amount_cents": "8"})
    page = late.content.decode()
    assert late.status_code == 409 and first in page and 'value="8"' in page and Run.objects.count() == 1
    key = re.findall(r'name="request_key" value="([^"]+)"', page)[0]
    assert olga.post(START, given | {"input/amount_cents": "8", "request_key": key}).status_code == 302
    assert Run.objects.count() == 2


def test_faults_stand_at_their_fields_and_what_was_typed_stays(olga: Client) -> None:
    release()
    wrong = olga.post(START, typed(olga, **{"input/order_id": "x-1", "labels": "no label"}))
    page = wrong.content.decode()
    assert wrong.status_code == 422 and not Run.objects.exists()
    assert "It does not match" in page and "Line 1: a label is written name:value." in page
    assert 'value="x-1"' in page and "no label" in page


def test_a_secret_is_sealed_and_never_shown_again(olga: Client) -> None:
    release()
    wrong = olga.post(START, typed(olga, **{"input/order_id": "x", "input/card": "4111-1111"}))
    assert wrong.status_code == 422 and "4111-1111" not in wrong.content.decode()
    olga.post(START, typed(olga, **{"input/card": "4111-1111"}))
    run = Run.objects.get()
    assert "4111" not in str(start_of(run)) and "4111" not in olga.get(f"/runs/{run.id}").content.decode()


def test_the_input_may_be_written_as_json_and_shown_as_a_form_again(olga: Client) -> None:
    release()
    page = olga.post(START, typed(olga, show="json")).content.decode()
    assert 'name="input:as" value="json"' in page and "&quot;order_id&quot;: &quot;o-1&quot;" in page
    given = {name: text for name, text in typed(olga).items() if not name.startswith("input/")}
    given |= {"input:as": "json", "input": '{"order_id": "o-2"}'}
    assert 'value="o-2"' in olga.post(START, given | {"show": "form"}).content.decode()
    assert not Run.objects.exists()
    assert "This is not JSON" in olga.post(START, given | {"input": "{", "show": "form"}).content.decode()
    assert olga.post(START, given).status_code == 302
    assert start_of(Run.objects.get())["input"] == {"order_id": "o-2"}


def test_an_agent_that_does_not_say_what_it_takes_is_given_json(olga: Client) -> None:
    release(takes=None)
    given = {name: text for name, text in typed(olga).items() if not name.startswith("input/")}
    assert olga.post(START, given | {"input": '{"a": [1, null]}'}).status_code == 302
    assert olga.post(START, given | {"input": "", "request_key": "another"}).status_code == 302
    assert [start_of(run)["input"] for run in Run.objects.order_by("id")] == [{"a": [1, None]}, None]


def test_releases_that_live_workers_serve_are_offered(olga: Client) -> None:
    older, newer = release("4"), release("5", takes={"type": "integer"})
    release("6", served=False)
    page = olga.get(START).content.decode()
    assert older.id in page and newer.id in page and ">6, " not in page
    shown = olga.post(START, typed(olga, release=older.id, show="form")).content.decode()
    assert 'name="input/order_id"' in shown
    assert olga.post(START, typed(olga, release=older.id)).status_code == 302
    assert Run.objects.get().release_id == older.id


def test_a_release_that_nobody_serves_is_said_to_wait(olga: Client) -> None:
    release(served=False)
    assert "No live worker serves it" in olga.get(START).content.decode()
    assert olga.post(START, typed(olga)).status_code == 302


def test_one_chooses_the_agent_first(olga: Client) -> None:
    release()
    assert f'href="{START}"' in olga.get("/start").content.decode()
    assert olga.get("/agents/nobody/start").status_code == 404


@pytest.mark.parametrize(("who", "may"), [("victor", False), ("ada", False), ("olga", True), ("max", True)])
def test_starting_is_for_those_who_operate(cast: None, who: str, may: bool) -> None:
    release()
    client = signed_in(who)
    assert client.get(START).status_code == client.get("/start").status_code == (200 if may else 403)
    assert client.post(START, {}).status_code == (422 if may else 403)


def test_agents_outside_of_ones_scope_are_not_there(olga: Client) -> None:
    release()
    AgentScope.objects.create(user=User.objects.get(username="olga"), agent="another")
    olga = signed_in("olga")
    assert olga.get(START).status_code == 404 and "payer" not in olga.get("/start").content.decode()
