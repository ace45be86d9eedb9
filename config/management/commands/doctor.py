from typing import Any

from django.core.management.base import BaseCommand, CommandError

from config.doctor import findings


class Command(BaseCommand):
    help = (
        "Looks at the database, its durability, partitions, broker and versions. Exit 1 if something must be put right."
    )
    requires_system_checks = ()

    def handle(self, *args: Any, **options: Any) -> None:
        faults = 0
        for finding in findings():
            faults += finding.fault
            self.stdout.write(f"{'FAULT' if finding.fault else 'ok':5}  {finding.what}: {finding.words}")
        if faults:
            raise CommandError(f"{faults} to put right.", returncode=1)
