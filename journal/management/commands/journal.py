import sys
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError, CommandParser

from journal.errors import JournalError, NoSuchRun
from journal.export import export_run
from journal.verify import all_runs, verify_run


class Command(BaseCommand):
    help = "Verify or export journals."

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        verify = verbs.add_parser("verify", help="Exit 1 and a line with run id and seq for each fault.")
        which = verify.add_mutually_exclusive_group(required=True)
        which.add_argument("run", nargs="?", type=UUID)
        which.add_argument("--all", action="store_true")
        export = verbs.add_parser("export", help="Entries as lines of JSON.")
        export.add_argument("runs", nargs="+", type=UUID, metavar="run")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            if options["verb"] == "verify":
                self._verify(list(all_runs()) if options["all"] else [options["run"]])
            else:
                for run_id in options["runs"]:
                    for line in export_run(run_id):
                        self.stdout.write(line)
        except JournalError as error:
            raise CommandError(str(error)) from error

    def _verify(self, runs: list[UUID]) -> None:
        faults = 0
        for run_id in runs:
            try:
                found = verify_run(run_id)
            except NoSuchRun as error:
                raise CommandError(str(error)) from error
            for fault in found:
                self.stdout.write(str(fault))
            faults += len(found)
        if faults:
            sys.exit(1)
        self.stdout.write(f"{len(runs)} journals are what was written")
