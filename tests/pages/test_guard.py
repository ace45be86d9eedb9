"""Who may see and do what: every page, every role."""

import pytest
from django.test import Client

from journal.read import read_head
from runs.models import Status
from tests.pages.conftest import signed_in
from tests.pages.journals import Story, awaiting_approval, in_doubt

pytestmark = pytest.mark.django_db

PAGES = ["/inbox", "/inbox/settled", "/runs", "/workers", "/agents", "/agents/refund-desk", "/gates"]
PAGES += ["{run}", "{run}/entries/1"]
# role → what it may do
MAY = {
    "victor": set(),
    "olga": {"control", "reconcile"},
    "ada": {"approve", "reconcile"},
    "max": {"control", "approve", "reconcile"},
}


@pytest.mark.parametrize("page", ["/", *PAGES])
def test_nobody_signed_in_is_led_to_the_login_and_back(page: str) -> None:
    address = page.format(run=Story().url)
    answer = Client().get(address)
    assert answer.status_code == 302
    assert answer["Location"] == f"/login?next={address}"


def test_a_slash_too_many_leads_to_the_page_and_nowhere_else() -> None:
    assert Client().get("/runs/?status=done")["Location"] == "/runs?status=done"
    assert Client().get(f"{Story().url}/").status_code == 302
    for nowhere in ("/nothing/", "/%2Fevil.example/", "/%5Cevil.example/", "/api/v1/runs/", "/runs//"):
        answer = Client().get(nowhere)
        assert answer.status_code == 404, nowhere
    assert Client().post("/runs/").status_code == 405


@pytest.mark.parametrize(
    "verb",
    [
        "cancel",
        "hold",
        "resume",
        "release",
        "retry",
        "signal",
        "note",
        "asks/2/answer",
        "intents/2/approval",
        "intents/2/reconcile",
        "kill-worker",
    ],
)
def test_nothing_is_written_for_nobody(verb: str) -> None:
    story = Story()
    assert Client().post(f"{story.url}/{verb}", {"reason": "x"}).status_code == 302
    assert read_head(None, story.run.id).last_seq == 1


def test_a_fragment_for_nobody_reloads_the_page() -> None:
    answer = Client(headers={"HX-Request": "true"}).get(f"{Story().url}/entries/1")
    assert answer.status_code == 401 and answer["HX-Refresh"] == "true"


@pytest.mark.parametrize("who", MAY)
@pytest.mark.parametrize("page", PAGES)
def test_every_role_sees_every_page(cast: None, who: str, page: str) -> None:
    assert signed_in(who).get(page.format(run=Story().url)).status_code == 200


@pytest.mark.parametrize("who", MAY)
def test_a_control_is_for_those_who_operate(cast: None, who: str) -> None:
    story = Story().now_is(Status.RUNNING)
    allowed = "control" in MAY[who]
    client = signed_in(who)
    assert (f"{story.url}/hold" in client.get(story.url).content.decode()) is allowed
    assert client.get(f"{story.url}/hold").status_code == (200 if allowed else 403)
    assert client.post(f"{story.url}/hold", {"reason": "a look"}).status_code == (302 if allowed else 403)


@pytest.mark.parametrize("who", MAY)
def test_an_approval_is_for_those_who_approve(cast: None, who: str) -> None:
    story, seq = awaiting_approval()
    allowed = "approve" in MAY[who]
    client = signed_in(who)
    address = story.url.replace("/runs/", "/inbox/") + f"/{seq}"
    assert (address in client.get(story.url).content.decode()) is allowed
    assert (f"{address}/approve" in client.get(address).content.decode()) is allowed
    for verb in ("approve", "reject", "edit", "ask"):
        assert client.get(f"{address}/{verb}").status_code == (200 if allowed else 403)
        assert (client.post(f"{address}/{verb}", {"digest": "x"}).status_code == 403) is not allowed


@pytest.mark.parametrize("who", MAY)
def test_a_reconciliation_is_for_those_who_reconcile(cast: None, who: str) -> None:
    story, seq = in_doubt()
    allowed = "reconcile" in MAY[who]
    client = signed_in(who)
    address = story.url.replace("/runs/", "/inbox/") + f"/{seq}"
    assert (address in client.get(story.url).content.decode()) is allowed
    assert (f"{address}/reconcile" in client.get(address).content.decode()) is allowed
    assert client.get(f"{address}/reconcile").status_code == (200 if allowed else 403)
    assert client.post("/inbox/ask-the-tools", {}).status_code == (422 if allowed else 403)


def test_someone_without_a_role_sees_nothing(cast: None) -> None:
    from django.contrib.auth.models import User

    client = Client()
    client.force_login(User.objects.create(username="stranger"))
    assert client.get("/runs").status_code == 403
    assert b"Your role does not allow this" in client.get("/runs").content
