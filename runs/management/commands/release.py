"""Releases that workers have announced: `manage.py release list`."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandParser
from django.db.models import Count, Q

from runs.models import ENDED, Release


class Command(BaseCommand):
    requires_system_checks = []
    help = "Shows the releases: agent@version, runs that are not ended, when it was first announced, id."

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        verbs.add_parser("list", help="one line a release")

    def handle(self, *args: Any, **options: Any) -> None:
        open_runs = Count("run", filter=~Q(run__status__in=ENDED))
        for row in Release.objects.annotate(open_runs=open_runs).order_by("agent", "-created_at", "id"):
            self.stdout.write(f"{row}\t{row.open_runs} open\t{row.created_at:%Y-%m-%dT%H:%M:%SZ}\t{row.id}")
