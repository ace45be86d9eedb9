"""Lifts a hold or a divergence: `manage.py resume r-7K3M9Q2A --reason 'the bank is back'`."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from runs.access import shell_actor
from runs.commands import resume_run
from runs.errors import RunsError
from runs.queries import find_run


class Command(BaseCommand):
    requires_system_checks = []
    help = "Lifts a hold or a divergence of a run; the last line printed is its id."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("run", help="UUID or r-…")
        parser.add_argument("--reason", default="resumed on the command line")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            run = resume_run(run_id=find_run(options["run"]).id, reason=options["reason"], actor=shell_actor())
        except RunsError as refused:
            raise CommandError(str(refused), returncode=2) from refused
        self.stdout.write(f"{run.status}: {run.reason}" if run.reason else run.status)
        self.stdout.write(str(run.id))
