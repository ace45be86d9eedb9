import sys
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError, CommandParser

from journal.erase import erase_entries
from journal.errors import JournalError
from journal.export import export_run
from journal.importing import import_journals
from journal.verify import all_runs, verify_run


class Command(BaseCommand):
    help = "Verify, export, import or erase journals."

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        verify = verbs.add_parser("verify", help="A line with run id and seq for each fault; exit 1 if there is one.")
        which = verify.add_mutually_exclusive_group(required=True)
        which.add_argument("run", nargs="?", type=UUID)
        which.add_argument("--all", action="store_true")
        export = verbs.add_parser("export", help="Entries as lines of JSON.")
        export.add_argument("runs", nargs="+", type=UUID, metavar="run")
        take = verbs.add_parser("import", help="Takes exported journals in; refuses changed ones.")
        take.add_argument("file", help="- reads standard input")
        erase = verbs.add_parser(
            "erase", help="Turns bodies of a finished run into tombstones; the chain still verifies."
        )
        erase.add_argument("run", type=UUID)
        erase.add_argument("--seq", type=int, action="append", help="An entry; without it all of them.")
        erase.add_argument("--actor", required=True)
        erase.add_argument("--reason", required=True)

    def handle(self, *args: Any, verb: str, **options: Any) -> None:
        try:
            getattr(self, f"_{verb}")(options)
        except JournalError as error:
            raise CommandError(str(error)) from error

    def _verify(self, options: dict[str, Any]) -> None:
        runs = list(all_runs()) if options["all"] else [options["run"]]
        faults = 0
        for run_id in runs:
            for fault in verify_run(run_id):
                self.stdout.write(str(fault))
                faults += 1
        if faults:
            sys.exit(1)
        self.stdout.write(f"{len(runs)} journals are what was written")

    def _export(self, options: dict[str, Any]) -> None:
        for run_id in options["runs"]:
            for line in export_run(run_id):
                self.stdout.write(line)

    def _import(self, options: dict[str, Any]) -> None:
        if options["file"] == "-":
            runs = import_journals(sys.stdin)
        else:
            try:
                with open(options["file"], encoding="utf-8") as lines:
                    runs = import_journals(lines)
            except OSError as error:
                raise CommandError(str(error)) from error
        for run_id in runs:
            self.stdout.write(str(run_id))

    def _erase(self, options: dict[str, Any]) -> None:
        erased = erase_entries(options["run"], options["seq"], actor=options["actor"], reason=options["reason"])
        self.stdout.write(f"{len(erased)} entries erased")
