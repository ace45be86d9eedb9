"""A move in a real browser: opened from the run's menu, judged by itself, told by entry, then confirmed."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from journal.append import lock_head
from recovery.models import Replay
from runs.models import Release, Run, Status, WorkerSession
from tests.pages.browser import Site
from tests.pages.journals import Story
from tests.pages.test_browser_act import forget

pytestmark = pytest.mark.slow


def stranded() -> Run:
    run = Story().now_is(Status.WAITING_FOR_VERSION, reason="waits for a worker that serves it").run
    for version in ("8", "9"):
        Release.objects.create(id=version * 64, agent=run.agent, version=version, content=run.release.content)
    WorkerSession.objects.create(
        id=run.id, name="w8", host="h", pid=1, pool="threads", concurrency=4, region="local",
        serves=["8" * 64, "9" * 64], heartbeat_at=timezone.now(), expires_at=timezone.now() + timedelta(hours=1),
    )  # fmt: skip
    return run


def judge(run: Run, release: str, verdict: str, *reasons: tuple[int, str, str]) -> None:
    """As a worker would."""
    told = [{"seq": seq, "code": "decision", "says": says, "verdict": of} for seq, of, says in reasons]
    made = Replay.objects.filter(run=run, release_id=release, ended_at=None)
    made.update(
        ended_at=timezone.now(), verdict=verdict, as_of_seq=lock_head(run.id).last_seq,
        result={"code": "c" * 64, "reasons": told},
    )  # fmt: skip


@pytest.mark.parametrize("width", [1440, 390])
def test_a_run_is_moved_from_its_page(site: Site, width: int) -> None:
    run = stranded()
    page = site.open("olga", f"/runs/{run.id}/acts", viewport={"width": width, "height": 900})
    page.get_by_role("link", name="Re-pin").click()
    dialog = page.locator("#dialog[open]")
    dialog.get_by_text("Judging…").wait_for()
    judge(run, "9" * 64, "fork needed", (1, "compatible", "The schema of refund has changed."),
          (3, "fork needed", "It would call look_up here, and refund is recorded."))  # fmt: skip
    dialog.get_by_text("It would decide otherwise").wait_for()
    assert dialog.get_by_role("button", name="Re-pin").is_disabled()
    dialog.get_by_label("@8").check()
    dialog.get_by_text("Judging…").wait_for()
    judge(run, "8" * 64, "compatible", (1, "compatible", "The schema of refund has changed."))
    dialog.get_by_text("What is written").wait_for()
    dialog.get_by_role("button", name="Re-pin to 8").click()
    dialog.locator(".err", has_text="Write a reason.").wait_for()
    dialog.get_by_role("textbox", name="Reason").fill("v7 has no workers")
    dialog.get_by_role("button", name="Re-pin to 8").click()
    page.get_by_text("PIN was written to its journal").wait_for()
    assert Run.objects.get(id=run.id).release_id == "8" * 64
    forget(site, 422)
