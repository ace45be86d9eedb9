"""Bulk acts from the list: counted, confirmed, ordered once, followed, stopped."""

import re
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from recovery.bulk import COMMANDS, REFUSALS
from runs.bulk_work import carry_out, work_on_one
from runs.models import BulkAct, Run, Status
from runs.short_ids import short_id
from tests.pages.conftest import signed_in
from tests.pages.journals import Story, awaiting_approval, in_doubt
from tests.pages.test_list import doubt

pytestmark = pytest.mark.django_db


def form_of(page: str) -> dict[str, str]:
    found = re.findall(r'<input type="hidden" name="(counted|request_id)" value="([^"]*)"', page)
    return dict(found) | {"reason": "the shop is closed"}


def send(client: Client, address: str, **more: str) -> Any:
    """As a person does: look at the count, then order."""
    page = client.get(address)
    assert page.status_code == 200, page.content
    return client.post(address, form_of(page.content.decode()) | more)


def test_the_list_offers_what_the_role_may_do(olga: Client, victor: Client, ada: Client) -> None:
    Story()
    assert 'name="run"' in olga.get("/runs").content.decode()
    for client in (victor, ada):
        page = client.get("/runs").content.decode()
        assert 'name="run"' not in page and "/bulk/order" not in page.replace('action="/bulk/order"', "")
        assert client.get("/bulk/order?verb=cancel").status_code == 403


def test_first_it_is_counted_by_status_and_nothing_is_written(olga: Client) -> None:
    Story(), Story()
    doubt(Story())
    Story().now_is(Status.DONE, ended_at=timezone.now())
    page = olga.get("/bulk/order?verb=cancel&q=").content.decode()
    assert "Cancel 2 runs?" in page and "Type 2 to confirm" in page
    assert "an intent of it has no result yet" in page and "it has ended" in page
    assert BulkAct.objects.count() == 0


def test_cancelling_wants_the_count_typed_and_a_reason(olga: Client) -> None:
    story = Story()
    for wrong in ({"typed": ""}, {"typed": "2"}, {"typed": "1", "reason": ""}):
        answer = send(olga, "/bulk/order?verb=cancel&q=", **wrong)
        assert answer.status_code == 422 and 'aria-invalid="true"' in answer.content.decode()
    assert BulkAct.objects.count() == 0
    answer = send(olga, "/bulk/order?verb=cancel&q=", typed="1")
    act = BulkAct.objects.get()
    assert answer.status_code == 302 and answer.url == f"/bulk/{act.pk}"
    assert (act.actor, act.door, act.reason, act.query) == ("olga", "page", "the shop is closed", "")
    assert act.items.get().run_id == story.run.id


def test_ticked_rows_are_taken_and_no_others_unless_all_that_match_are_wanted(olga: Client) -> None:
    one, other = Story(), Story()
    address = f"/bulk/order?verb=hold&q=&run={one.run.id}"
    page = olga.get(address).content.decode()
    assert "The 1 run that you selected" in page and str(one.run.id) in page
    send(olga, address)
    assert [item.run_id for item in BulkAct.objects.get().items.all()] == [one.run.id]
    assert "Hold 2 runs?" in olga.get(address + "&all=1").content.decode()
    assert short_id(other.run.id)


def test_more_runs_than_were_counted_are_refused_with_the_new_count(olga: Client) -> None:
    Story()
    address = "/bulk/order?verb=hold&q="
    given = form_of(olga.get(address).content.decode())
    Story()
    answer = olga.post(address, given)
    page = answer.content.decode()
    assert answer.status_code == 409 and "more runs match now" in page and "Hold 2 runs" in page
    assert BulkAct.objects.count() == 0


def test_a_double_click_orders_once(olga: Client) -> None:
    Story()
    address = "/bulk/order?verb=hold&q="
    given = form_of(olga.get(address).content.decode())
    first, second = olga.post(address, given), olga.post(address, given)
    assert first.url == second.url and BulkAct.objects.count() == 1


def test_a_query_that_cannot_be_read_orders_nothing(olga: Client) -> None:
    answer = olga.get("/bulk/order?verb=hold&q=status:lost")
    assert answer.status_code == 422 and "<mark>lost</mark>" in answer.content.decode()
    assert olga.get("/bulk/order?verb=explode").status_code == 422


def test_its_page_tells_what_became_of_each_run_and_why(olga: Client) -> None:
    queued = Story()
    waiting, _ = awaiting_approval()
    silent, _ = in_doubt()
    silent.now_is(Status.NEEDS_RECONCILIATION)
    send(olga, "/bulk/order?verb=hold&q=")
    act = BulkAct.objects.get()
    Run.objects.filter(id=waiting.run.id).update(status=Status.DONE, ended_at=timezone.now())
    carry_out(COMMANDS, REFUSALS, 60.0, lambda: False)
    page = olga.get(f"/bulk/{act.pk}").content.decode()
    assert "Finished" in page and "Stop" not in page.replace("Stopped", "")
    for story, outcome in ((queued, "Done"), (waiting, "Skipped"), (silent, "Skipped")):
        assert re.search(rf'id="item-{story.run.id}".*?>{outcome}</span>', page, re.S), outcome
    assert "has ended" in page and "an intent of it has no result yet" in page
    skipped = olga.get(f"/bulk/{act.pk}?outcome=skipped").content.decode()
    assert short_id(waiting.run.id) in skipped and short_id(queued.run.id) not in skipped
    assert f'href="/bulk/{act.pk}"' in olga.get("/bulk").content.decode()


def test_it_is_stopped_by_a_button_once(olga: Client, victor: Client) -> None:
    for _ in range(3):
        Story()
    send(olga, "/bulk/order?verb=hold&q=")
    act = BulkAct.objects.get()
    work_on_one(act.pk, COMMANDS, REFUSALS, set())
    page = olga.get(f"/bulk/{act.pk}").content.decode()
    assert "Stop: 2 not yet reached" in page and "Under way" in page
    assert "Stop:" not in victor.get(f"/bulk/{act.pk}").content.decode()
    assert victor.post(f"/bulk/{act.pk}/stop").status_code == 403
    assert olga.post(f"/bulk/{act.pk}/stop").url == f"/bulk/{act.pk}"
    assert "Not reached" in olga.get(f"/bulk/{act.pk}").content.decode()
    assert olga.post(f"/bulk/{act.pk}/stop").status_code == 409
    assert olga.get(f"/bulk/{act.pk}/stop").status_code == 405


def test_what_is_there_to_do_with_all_that_match_is_said_verb_by_verb(olga: Client) -> None:
    Story()
    page = olga.get("/bulk/all?q=agent:refund-desk").content.decode()
    for verb in ("hold", "resume", "release", "retry", "probe", "cancel"):
        assert f"/bulk/order?verb={verb}&amp;q=agent%3Arefund-desk" in page
    assert olga.get("/bulk/8").status_code == 404


def test_markup_in_reason_and_query_is_inert(olga: Client) -> None:
    Story().now_is(Status.QUEUED, labels={"x": "<img src=x onerror=alert(1)>"})
    address = '/bulk/order?verb=hold&q=label:x:"<img src=x onerror=alert(1)>"'
    send(olga, address, reason="</script><script>alert(1)</script>")
    act = BulkAct.objects.get()
    for page in (f"/bulk/{act.pk}", "/bulk", address):
        text = signed_in("olga").get(page).content.decode()
        assert "<img" not in text and "<script>alert" not in text
