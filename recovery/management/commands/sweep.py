"""manage.py sweep: sends runs that nobody drives to a worker."""

from __future__ import annotations

import signal
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from recovery.sweep import Sweep
from runs.dispatch import dispatch


class Command(BaseCommand):
    requires_system_checks = ()
    help = "End sessions whose lease ran out, and re-queue what nobody drives, until SIGTERM."

    def handle(self, *args: Any, **options: Any) -> None:
        sweep = Sweep(settings.HOLDFAST_DSN, settings.HOLDFAST_LEASE_SECONDS, settings.HOLDFAST_SWEEP_SECONDS, dispatch)
        for name in (signal.SIGTERM, signal.SIGINT):
            signal.signal(name, lambda *_: sweep.stopping.set())
        sweep.run()
