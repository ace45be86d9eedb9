"""How releases are chosen by stage, and stages changed: under one lock an agent, in the order that the database allows.

The commands are in runs/stages.py; what a release becomes as a worker announces it is decided here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import psycopg
from django.conf import settings
from django.db import connection
from django.db.models import QuerySet
from django.db.models.functions import Now

from runs.audit import record
from runs.errors import ReleaseNotFound
from runs.models import Release, Stage, WorkerSession
from runs.texts import is_writable, plain_text

ONE_AT_A_TIME = "SELECT pg_advisory_xact_lock(hashtextextended('stage of ' || %s, 0))"
CHOICE = "SELECT runs_release_for_v1(%s, %s)"
SYSTEM = "system"


def chosen_release(agent: str, sticky: str | None) -> str | None:
    """The id of the release that a new run is pinned to, by stage and share; None where none takes new runs. Asked for
    each start, so that a promotion holds from the next one on: one short statement that stays prepared."""
    connection.ensure_connection()
    with connection.wrap_database_errors, psycopg.Cursor(connection.connection) as cursor:  # Django's does not prepare
        row = cursor.execute(CHOICE, (agent, sticky), prepare=True).fetchone()
    assert row is not None
    chosen: str | None = row[0]
    return chosen


# -- which one ---------------------------------------------------------------------------------------------------------


def find_release(named: str) -> Release:
    """By its id, or as agent@version: the one that was announced last under it. Raises ReleaseNotFound."""
    if not is_writable(named):
        raise ReleaseNotFound("Its name is no text.")
    agent, at, version = named.rpartition("@")
    rows = Release.objects.filter(agent=agent, version=version) if at else Release.objects.filter(id=named)
    found = rows.order_by("-created_at", "-id").first()
    if found is None:
        raise ReleaseNotFound(f"({plain_text(named)[:100]})")
    return found


def current_of(agent: str) -> Release | None:
    return releases_of(agent).filter(stage=Stage.CURRENT).defer("content", "declared").first()


def releases_of(agent: str) -> QuerySet[Release]:
    return Release.objects.filter(agent=agent).order_by("-created_at", "-id")


def main_release(known: Sequence[Release]) -> Release:
    """Of the releases of one agent, the newest first, the one that stands for it: the current one, else the newest."""
    return next((release for release in known if release.stage == Stage.CURRENT), known[0])


# -- as it is announced ------------------------------------------------------------------------------------------------


def stage_announced(release: Release, *, serving: bool) -> None:
    """What it is to new runs, the first time that somebody announces it; in the transaction that records it.

    It becomes current where the agent has no current release. Announced by a worker that is about to serve it, also
    where no live worker serves the current one, for nobody could be started on that; or where the worker was told to
    promote (HOLDFAST_PROMOTE). In development it takes the place of an older content of the same version. Else it stays
    a candidate, and so does one of whose stage somebody has decided before.
    """
    decided = not settings.HOLDFAST_ALLOW_REDEFINE and not is_undecided(release, serving)
    if decided and current_of(release.agent) is not None:
        return  # as of most that start: nothing is locked
    lock(release.agent)
    release.refresh_from_db(fields=["stage", "share", "staged_by", "replaced"])
    current = current_of(release.agent)
    if current is None:
        make_current(release, "the first release of its agent", SYSTEM)
    elif settings.HOLDFAST_ALLOW_REDEFINE and replaced_content(release):
        return
    elif is_undecided(release, serving):
        if settings.HOLDFAST_PROMOTE:
            make_current(release, "its worker was started with leave to promote it", SYSTEM)
        elif not is_served(current.id):
            make_current(release, f"no live worker serves {current}", SYSTEM)
        else:
            stage_release(release, Stage.CANDIDATE, SYSTEM)


def is_undecided(release: Release, serving: bool) -> bool:
    return serving and release.stage == Stage.CANDIDATE and not release.staged_by


def replaced_content(release: Release) -> bool:
    """Whether it has been given the stage that another content of the same version had."""
    others = releases_of(release.agent).filter(version=release.version).exclude(id=release.id)
    before = others.filter(stage__in=(Stage.CURRENT, Stage.CANARY)).order_by("stage").last()
    if before is None:
        return False
    stage, share = Stage(before.stage), before.share
    if stage == Stage.CURRENT:
        make_current(release, "redefined in development", SYSTEM)
    else:
        stage_release(before, Stage.RETIRING, SYSTEM)
        stage_release(release, stage, SYSTEM, share)
        recorded(release, "release.canary", "redefined in development", SYSTEM, share=share)
    return True


# -- under the agent's lock --------------------------------------------------------------------------------------------


def lock(agent: str) -> None:
    """Until the transaction ends nobody else changes a stage of this agent."""
    with connection.cursor() as cursor:
        cursor.execute(ONE_AT_A_TIME, [agent])


def locked(release_id: str) -> Release:
    """The release as it is under the lock of its agent. Raises ReleaseNotFound."""
    lock(find_release(release_id).agent)
    return Release.objects.get(id=find_release(release_id).id)


def is_served(release_id: str) -> bool:
    """Whether a live worker would take a new run under it."""
    live = WorkerSession.objects.filter(ended_at=None, draining_at=None, expires_at__gt=Now())
    return live.filter(serves__contains=[release_id]).exists()


def make_current(release: Release, reason: str, actor: str) -> Release:
    """In the order in which the database allows but one current release."""
    before, was = current_of(release.agent), release.stage
    if before is not None:
        stage_release(before, Stage.RETIRING, actor)
    release.replaced = before
    stage_release(release, Stage.CURRENT, actor)
    recorded(release, "release.promote", reason, actor, before=was, instead_of=None if before is None else str(before))
    return release


def stage_release(release: Release, stage: Stage, actor: str, share: int = 0) -> None:
    release.stage, release.share, release.staged_by = stage, share, plain_text(actor)
    changed = {"stage": stage, "share": share, "staged_by": release.staged_by, "replaced": release.replaced_id}
    Release.objects.filter(id=release.id).update(**changed, staged_at=Now())
    release.refresh_from_db(fields=["staged_at"])


def recorded(release: Release, act: str, reason: str, actor: str, **detail: Any) -> None:
    record(actor, act, agent=release.agent, subject=str(release), reason=reason, release=release.id, **detail)
