"""manage.py generate: fills a database for tests of scale."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from runs.errors import RunsError
from runs.generate import generate


class Command(BaseCommand):
    requires_system_checks = []
    help = "Fill a database for tests of scale with runs that look real, of every status, over thirty days."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--runs", type=int, required=True, metavar="N")
        parser.add_argument("--entries-per-run", type=int, required=True, metavar="M", help="at least 2")
        parser.add_argument("--seed", type=int, default=0, help="the same seed gives the same stories")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            generate(options["runs"], options["entries_per_run"], options["seed"])
        except RunsError as refused:
            raise CommandError(str(refused), returncode=2) from refused
        self.stdout.write(f"{options['runs']} runs of {options['entries_per_run']} entries each")
