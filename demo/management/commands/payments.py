from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from demo.payments import __main__ as payments


class Command(BaseCommand):
    help = "Runs the demo's payments service, a process with storage of its own."
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        payments.add_arguments(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        raise SystemExit(payments.run(**{name: options[name] for name in ("port", "storage", "port_file")}))
