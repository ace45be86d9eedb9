"""manage.py chaos: kills workers under runs and says whether every promise was kept."""

from __future__ import annotations

import json
import os
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from recovery.chaos import rehearse
from runs.errors import RunsError


class Command(BaseCommand):
    help = "Start runs, kill a worker of this machine now and then, and check: all rest, nothing was done twice."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--seconds", type=float, default=15.0, help="how long workers are killed")
        parser.add_argument("--runs", type=int, default=20)
        parser.add_argument("--every", type=float, default=3.0, help="seconds between two kills")
        parser.add_argument("--patience", type=float, default=60.0, help="seconds until all runs must rest")
        parser.add_argument("--agent", default="refund-desk")
        parser.add_argument("--input", help="JSON; {n} becomes the run's number. Default: small refunds of the demo")
        parser.add_argument("--ledger", default=os.environ.get("HOLDFAST_PAYMENTS_URL"), help="address of its effects")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["seconds"] <= 0 or options["every"] <= 0 or not 1 <= options["runs"] <= 10_000:
            raise CommandError("--seconds and --every are above 0, --runs is from 1 to 10000")
        template = options["input"] or '{"order_id": "o-{n}", "amount_cents": 100}'
        try:
            inputs = [json.loads(template.replace("{n}", str(n))) for n in range(1, options["runs"] + 1)]
            report = rehearse(
                agent=options["agent"],
                inputs=inputs,
                seconds=options["seconds"],
                every=options["every"],
                patience=options["patience"],
                ledger=options["ledger"],
                say=self.stdout.write,
            )
        except json.JSONDecodeError as error:
            raise CommandError(f"--input is not JSON: {error}") from error
        except RunsError as error:
            raise CommandError(str(error)) from error
        rests = ", ".join(f"{count} {status}" for status, count in sorted(report.statuses.items()))
        self.stdout.write(
            f"{report.runs} runs, {report.kills} workers killed, {report.resumed} resumed under a new epoch,"
            f" {report.seconds:.1f} s: {rests}"
        )
        for line in report.broken:
            self.stderr.write(line)
        if report.broken:
            raise CommandError(f"{len(report.broken)} promise(s) broken")
        once = "no key has two effects" if options["ledger"] else "effects not looked up: no --ledger"
        if not report.resumed:
            self.stdout.write("no run was hit: give it longer runs, or more of them")
        self.stdout.write(f"every run rests with a reason, every chain verifies, {once}")
