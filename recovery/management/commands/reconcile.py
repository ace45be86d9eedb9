"""Settles an intent in doubt: `manage.py reconcile r-7K3M9Q2A 7 happened --evidence 'bank statement'`."""

from __future__ import annotations

from mimetypes import guess_type
from typing import Any, BinaryIO, ClassVar

import click

from recovery.commands import VERDICTS, reconcile_intent
from recovery.errors import RecoveryError
from recovery.files import LARGEST, EvidenceFile
from runs.access import shell_actor
from runs.management.arguments import JsonParam, RunsCommand, as_json, tell_run, the_run, the_seq
from runs.management.intent import intent_of, tell_intent
from runs.queries import find_run
from terminal.command import FAILED, HELP, exit_codes
from terminal.numbers import Whole
from terminal.screen import Screen


@click.command("reconcile", context_settings=HELP, epilog=exit_codes(exit_1="not settled: the answer was no"))
@the_run
@the_seq
@click.argument("verdict", type=click.Choice(VERDICTS))
@click.option("--evidence", required=True, help="How you know; written to the journal beside your name.")
@click.option("--result", type=JsonParam(), default="null", metavar="JSON", help="With happened: what it answered.")
@click.option("--attempt", type=Whole(1), help="The send you judge: no later one is meant.")
@click.option("--external-id", default="", metavar="ID", help="With happened: its name on the other side.")
@click.option("--file", type=click.File("rb"), help="A file as evidence, up to 10 MB.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@as_json
@click.pass_obj
def words(
    screen: Screen, /, run: str, seq: int, verdict: str, evidence: str, result: Any, attempt: int | None,
    external_id: str, file: BinaryIO | None, yes: bool, as_json: bool,
) -> int | None:  # fmt: skip
    """Say what became of the intent SEQ of a run, which is in doubt.

    happened settles it with --result. never_happened lets a worker execute it under its own key. probe lets a worker
    ask the tool by that key. abort ends the run as cancelled and keeps the question on record.
    """
    found = find_run(run)
    slot = intent_of(found, seq)
    judged = attempt
    if screen.interactive and not yes:
        tell_intent(screen, found, slot)
        if not screen.sure(f"{verdict.replace('_', ' ').capitalize()}?"):
            screen.note("Nothing was settled.")
            return FAILED
        judged = attempt or len(slot.attempts)
    changed = reconcile_intent(
        run_id=found.id,
        seq=seq,
        verdict=verdict,
        evidence=evidence,
        result=result,
        attempt=judged,
        external_id=external_id,
        file=given_file(file),
        actor=shell_actor(),
    )
    tell_run(screen, changed, as_json)
    return None


def given_file(file: BinaryIO | None) -> EvidenceFile | None:
    """One byte more than may be is enough to be refused."""
    if file is None:
        return None
    return EvidenceFile(file.name, guess_type(file.name)[0] or "", file.read(LARGEST + 1))


class Command(RunsCommand):
    help = "Settle an intent in doubt, with evidence."
    refusals: ClassVar = (*RunsCommand.refusals, RecoveryError)
    words = words
