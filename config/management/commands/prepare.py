import os
from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand
from django.db import connection

from runs.access import ensure_demo_users, ensure_roles

ONE_AT_A_TIME = "SELECT pg_advisory_lock(7203916450)"


class Command(BaseCommand):
    help = "Brings the database, the roles and the static files to this version. Safe to run again, and side by side."
    requires_system_checks = ()

    def handle(self, *args: Any, **options: Any) -> None:
        with connection.cursor() as cursor:
            cursor.execute(ONE_AT_A_TIME)  # let go when the connection closes
        call_command("migrate", verbosity=0, interactive=False)
        ensure_roles()
        if password := os.environ.get("HOLDFAST_DEMO_PASSWORD"):
            ensure_demo_users(password)
        connection.close()
        call_command("collectstatic", verbosity=0, interactive=False)
