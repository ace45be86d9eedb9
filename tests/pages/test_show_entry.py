"""One entry in the inspector: who wrote it, what allowed it, what came late, what stands before and after."""

import pytest
from django.test import Client

from journal.encoding import encode
from journal.entries import Kind
from journal.erase import erase_entries
from runs.models import Evidence, Status
from tests.pages.incidents import incident, url_of
from tests.pages.journals import Story, in_doubt, session

pytestmark = pytest.mark.django_db


def inspector_of(client: Client, address: str) -> str:
    page = client.get(address).content.decode()
    return page[page.index('id="inspector"') :]


def test_a_call_says_who_wrote_it_that_its_worker_was_fenced_and_what_allowed_it(victor: Client) -> None:
    shown = inspector_of(victor, f"{url_of(incident())}?seq=17")
    assert "w-eu1-9a</span>, epoch 2, since fenced" in shown
    assert '<a href="?seq=19">seq 19</a> and <a href="?seq=20">seq 20</a>, digest matches' in shown
    assert "None. Pending" in shown


def test_an_approval_of_another_digest_is_said_to_be_one(victor: Client) -> None:
    story = Story()
    seq = story.call(gate="approval")
    story.write(Kind.APPROVAL, {"verdict": "granted", "digest": "00" * 32}, step=1, actor="ada")
    shown = inspector_of(victor, f"{story.url}?seq={seq}")
    assert "another digest" in shown and "digest matches" not in shown


def test_the_key_and_the_amount_stand_out_and_nothing_is_shortened(victor: Client) -> None:
    story = Story()
    seq = story.call(order_id="o-1", amount_cents=24_000, note="x" * 300)
    shown = inspector_of(victor, f"{story.url}?seq={seq}")
    assert f'<mark><span class="s">&quot;{story.run.id}:1&quot;</span></mark>' in shown
    assert '<mark><span class="n">24000</span></mark>' in shown and "x" * 300 in shown
    assert shown.count("<mark>") == 2


def test_the_entries_beside_it_are_a_step_away_and_keep_the_rest_of_the_address(victor: Client) -> None:
    address = url_of(incident())
    shown = inspector_of(victor, f"{address}?seq=5&axis=seq")
    assert 'href="?seq=4&amp;axis=seq"' in shown and 'href="?seq=6&amp;axis=seq"' in shown
    assert "Entry before" not in inspector_of(victor, f"{address}?seq=1")
    assert "Next entry" not in inspector_of(victor, f"{address}?seq=24")


def test_a_late_result_is_shown_beside_its_intent_and_leads_to_where_it_is_adopted(olga: Client) -> None:
    story, seq = in_doubt()
    body = encode({"outcome": "succeeded", "result": {"id": "late-1"}, "source": "worker"})
    late = Evidence.objects.create(
        run=story.run, step=1, epoch=1, session=session("w7"), body=body, outcome="succeeded"
    )
    shown = inspector_of(olga, f"{story.url}?seq={seq}")
    assert "Late results, kept beside the journal" in shown and "w7" in shown and "late-1" in shown
    assert "Not adopted." in shown and "/inbox/" in shown
    late.adopted_seq = story.result({"id": "late-1"})
    late.save()
    assert f'Adopted at <a href="?seq={late.adopted_seq}">' in inspector_of(olga, f"{story.url}?seq={seq}")


def test_an_entry_is_copied_as_the_api_tells_it_and_as_calls_of_the_api(victor: Client) -> None:
    story = Story()
    seq = story.call(order_id="o-1", amount_cents=24_000)
    shown = inspector_of(victor, f"{story.url}?seq={seq}")
    assert "&quot;amount_cents&quot;: 24000" in shown[shown.index('id="copy-json"') :]
    api = f"/api/v1/runs/{story.run.id}"
    assert f"{api}/journal?after={seq - 1}&amp;limit=1" in shown and f"{api}/state?at=2" in shown
    assert "Bearer $HOLDFAST_TOKEN" in shown


def test_erased_entries_leave_the_page_standing_and_their_text_gone(victor: Client) -> None:
    story = Story()
    story.plan(thought="the-secret-thought", plan=[{"next": "the-secret-plan"}])
    story.call(secret="the-secret-argument")
    story.result({"secret": "the-secret-result"})
    story.done(result={"secret": "the-secret-end"})
    story.now_is(Status.DONE, ended_at="2026-11-17T14:02:11Z")
    assert b"the-secret" in victor.get(story.url).content
    erase_entries(story.run.id, actor="max", reason="asked for")
    for place in ("", "?seq=3", "?at=4&with=2", "/journal", *(f"?seq={seq}" for seq in range(1, story.last + 1))):
        answer = victor.get(story.url + place)
        assert answer.status_code == 200 and b"the-secret" not in answer.content, place


def test_an_unknown_kind_and_one_of_a_newer_version_are_shown_as_they_are(victor: Client) -> None:
    story = Story()
    seq = story.write("WEATHER", {"rain": True, "critical": True})
    story.call()
    page = victor.get(f"{story.url}?seq={seq}").content.decode()
    assert "WEATHER" in page and "&quot;rain&quot;" in page
    assert victor.get(f"{story.url}?at={story.last}").status_code == 200
