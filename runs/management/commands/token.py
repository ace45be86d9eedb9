"""API tokens: `manage.py token create --user ada --role approver`."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from runs.access import ROLES, make_token
from runs.errors import RunsError


class Command(BaseCommand):
    requires_system_checks = []
    help = "Makes API tokens. The last line printed is the token; it cannot be shown again."

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        create = verbs.add_parser("create", help="a new token; a missing user is made")
        create.add_argument("--user", required=True, metavar="U")
        create.add_argument(
            "--role", choices=sorted(ROLES), help="gives the user exactly this role; a new user is a viewer"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            token = make_token(options["user"], options["role"])
        except RunsError as refused:
            raise CommandError(str(refused), returncode=2) from refused
        self.stdout.write(token)
