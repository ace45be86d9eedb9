"""Decides an approval: `manage.py approve r-7K3M9Q2A 7 --note 'as agreed'`."""

from __future__ import annotations

import click

from runs.access import shell_actor
from runs.commands import decide_approval
from runs.management.arguments import RunsCommand, as_json, tell_run, the_run, the_seq
from runs.management.intent import digest_of, intent_of, tell_intent
from runs.queries import find_run
from terminal.command import FAILED, HELP, exit_codes
from terminal.screen import Screen


@click.command("approve", context_settings=HELP, epilog=exit_codes(exit_1="not decided: the answer was no"))
@the_run
@the_seq
@click.option("--deny", is_flag=True, help="Reject it; needs a note.")
@click.option("--note", default="", help="It is written to the journal beside your name.")
@click.option("--digest", help="Of the intent as you saw it. Without a terminal, or with --yes, it must be given.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@as_json
@click.pass_obj
def words(
    screen: Screen, /, run: str, seq: int, deny: bool, note: str, digest: str | None, yes: bool, as_json: bool
) -> int | None:
    """Approve (or --deny) the intent SEQ of a run, once, under the digest you saw.

    At a terminal the exact arguments are shown and a typed y is asked for.
    """
    found = find_run(run)
    slot = intent_of(found, seq)
    asks = screen.interactive and not yes
    if digest is None and not asks:
        raise click.UsageError("Give --digest: what you decide on, as `manage.py intents` shows it.")
    if asks and slot.state == "awaiting_approval":  # else the command says who decided what
        tell_intent(screen, found, slot)
        if not screen.sure("Reject it?" if deny else "Approve it?"):
            screen.note("Nothing was decided.")
            return FAILED
        digest = digest or digest_of(slot)
    changed = decide_approval(
        run_id=found.id,
        seq=seq,
        verdict="deny" if deny else "approve",
        digest=digest or "",
        note=note,
        actor=shell_actor(),
    )
    tell_run(screen, changed, as_json)
    return None


class Command(RunsCommand):
    help = "Approve or deny an intent, under the digest you saw."
    words = words
