"""What only a browser shows: streams, the policy in force, and that nothing needs a script."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID, uuid4

import pytest
from django.conf import settings

from runs.models import Status
from runs.short_ids import short_id
from runs.starting import start_run
from tests.pages.browser import Site, told
from tests.pages.journals import Story, session
from tests.rig.fleet import Fleet

pytestmark = pytest.mark.slow


def test_a_run_page_goes_on_by_itself_and_shows_the_take_over(site: Site) -> None:
    story = Story().now_is(Status.RUNNING, session=session("w1"))
    page = site.open("olga", story.url)
    page.locator("#live", has_text="Live").wait_for()
    story.call(order_id="o-1", amount_cents=4_000)
    told(story.run.id)
    page.locator("#row-2").wait_for()
    story.taken_over(session("w2"))
    told(story.run.id)
    page.locator(".wf-gap", has_text="until w2 took epoch 1").wait_for()
    page.locator(".run-facts", has_text="w2").wait_for()
    story.result({"id": "refund-1"})
    story.done(result={"refunded": True})
    story.now_is(Status.DONE, session=None)
    told(story.run.id)
    page.locator(".run-st", has_text="Done").wait_for()
    assert page.locator(".wf-row").count() == 5


def test_the_stream_leaves_the_chosen_entry_and_redraws_it_when_its_outcome_changes(site: Site) -> None:
    story = Story().now_is(Status.RUNNING, session=session("w1"))
    seq = story.call(order_id="o-1")
    page = site.open("victor", story.url)
    page.locator("#live", has_text="Live").wait_for()
    page.locator(f"#row-{seq}").click()
    page.locator("#inspector", has_text="none yet").wait_for()
    page.wait_for_url(f"**?seq={seq}")
    story.result({"id": "refund-1"})
    told(story.run.id)
    page.locator("#inspector", has_text="succeeded at").wait_for()
    assert page.locator(f"#row-{seq}").get_attribute("aria-current") == "true"


def test_a_worker_killed_from_the_page_is_taken_over_before_the_readers_eyes(site: Site, fleet: Fleet) -> None:
    with real_worker(fleet, "w1") as (worker, session_id):
        run, _ = start_run(agent="slow", input={"seconds": 8}, actor="olga")
        page = site.open("olga", f"/runs/{short_id(run.id)}")
        page.locator("#timeline .bar[data-b=open]").first.wait_for(state="attached")
        page.get_by_role("button", name="Kill this worker").click()
        assert worker.wait(60) == -signal.SIGKILL
        fleet.execute("UPDATE runs_workersession SET ended_at = clock_timestamp() WHERE id = %s", session_id)
    fleet.worker()
    fleet.sweeper()
    page.locator(".wf-gap", has_text="took epoch 2").wait_for()
    page.locator(".run-st", has_text="Done").wait_for()


@contextmanager
def real_worker(fleet: Fleet, name: str) -> Iterator[tuple[subprocess.Popen[bytes], UUID]]:
    """Started as the supervisor does it, so that its command line is a worker's."""
    session_id = uuid4()
    environment = os.environ | fleet.environment | {"HOLDFAST_SESSION": str(session_id)}
    with open(fleet.folder / f"{name}.log", "wb") as log:
        words = [sys.executable, "manage.py", "worker", "--name", name]
        worker = subprocess.Popen(words, cwd=settings.BASE_DIR, env=environment, stdout=log, stderr=log)
    try:
        yield worker, session_id
    finally:
        worker.kill()
        worker.wait()
