"""Starts a run: `manage.py start refund-desk --input '{"order_id": "o-1"}' --wait`."""

from __future__ import annotations

import json
import sys
from math import inf
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from runs.access import shell_actor
from runs.answers import run_detail
from runs.commands import start_run
from runs.errors import RunsError
from runs.models import Run, Status
from runs.wait import wait_for_rest

DONE, FAILED, PARKED = 0, 1, 4


class Command(BaseCommand):
    requires_system_checks = []  # they import every address, and would double the time
    help = "Starts a run. The last line printed is its id, or with --wait its result as JSON."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("agent")
        parser.add_argument("--input", default="null", metavar="JSON")
        parser.add_argument("--request-key", help="the same key with the same content gives the same run again")
        parser.add_argument("--release", help="the release to start under")
        parser.add_argument("--label", action="append", default=[], metavar="KEY:VALUE")
        parser.add_argument("--wait", action="store_true", help="exit 0 done, 1 failed or cancelled, 4 parked")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            run, _ = start_run(
                agent=options["agent"],
                input=_json(options["input"]),
                actor=shell_actor(),
                request_key=options["request_key"],
                release=options["release"],
                labels=dict(_label(text) for text in options["label"]),
            )
        except RunsError as refused:
            raise CommandError(str(refused), returncode=2) from refused
        self.stdout.write(str(run.id))
        if options["wait"]:
            self.stdout.flush()
            self._report(wait_for_rest(run.id))

    def _report(self, run: Run) -> None:
        """The ending as one line of JSON; leaves with the exit code that tells how it ended."""
        if run.status == Status.DONE:
            self.stdout.write(json.dumps(run_detail(run, largest=inf).result))
            return
        seen = run_detail(run)
        why = {"status": str(run.status), "reason": run.reason, "error": seen.error, "cancelled": seen.cancelled}
        self.stdout.write(json.dumps({name: value for name, value in why.items() if value}))
        sys.exit(FAILED if run.status in (Status.FAILED, Status.CANCELLED) else PARKED)


def _json(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise CommandError(f"--input is not JSON: {error}.", returncode=2) from error


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON value")


def _label(text: str) -> tuple[str, str]:
    key, colon, value = text.partition(":")
    if not colon or not key:
        raise CommandError(f"Write a label as KEY:VALUE, not {text!r}.", returncode=2)
    return key, value
