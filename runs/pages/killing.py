"""The demo's button: SIGKILL to a worker process of this machine, so that a person can watch its runs go on."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from django.contrib import messages
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST

from runs.access import CONTROL
from runs.errors import RunsError
from runs.models import Run
from runs.pages.run_page import lease_of
from runs.pages.way_back import as_it_was_seen
from runs.queries import find_run
from runs.signed_in import signed_in


class WorkerNotKillable(RunsError):
    """No live worker of this machine holds the run just now, or this is not a demo. Nothing was killed."""


@require_POST
@signed_in(CONTROL)
def kill(request: HttpRequest, ref: str) -> HttpResponseBase:
    name = kill_worker(run=find_run(ref, request.user))
    messages.warning(request, f"{name} was killed (SIGKILL). Another worker takes over under a new epoch.")
    return redirect(as_it_was_seen(request, reverse("runs:run", args=[ref])))


def kill_worker(*, run: Run) -> str:
    """Kills the process that holds the run and returns its name. Raises WorkerNotKillable."""
    lease = lease_of(run, timezone.now())
    if not lease.may_be_killed or lease.session is None or not is_worker(lease.session.pid):
        raise WorkerNotKillable
    try:
        os.kill(lease.session.pid, signal.SIGKILL)
    except ProcessLookupError as gone:
        raise WorkerNotKillable from gone
    return lease.session.name


def is_worker(pid: int) -> bool:
    """A process id is used again after a while: look at what it runs before a signal is sent to it."""
    try:
        return b"worker" in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
