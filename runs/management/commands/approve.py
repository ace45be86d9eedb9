"""Decides an approval: `manage.py approve r-7K3M9Q2A 7 --note 'as agreed'`; or changes it, or asks something first."""

from __future__ import annotations

from typing import Any

import click

from runs.access import shell_actor
from runs.approvals import SHELL_GROUPS, answer_question, decide_approval
from runs.management.arguments import JsonParam, RunsCommand, as_json, tell_run, the_run, the_seq
from runs.management.intent import digest_of, intent_of, tell_intent
from runs.queries import find_run
from terminal.command import FAILED, HELP, exit_codes
from terminal.screen import Screen

SURE = {"approve": "Approve it?", "deny": "Reject it?", "edit": "Change it?", "ask": "Ask that?"}


@click.command("approve", context_settings=HELP, epilog=exit_codes(exit_1="not decided: the answer was no"))
@the_run
@the_seq
@click.option("--deny", is_flag=True, help="Reject it; needs a note.")
@click.option(
    "--edit", type=JsonParam(), metavar="JSON", help="Put these arguments in place of the agent's (or @FILE)."
)
@click.option("--ask", metavar="TEXT", help="A question back: until it is answered the call can only be rejected.")
@click.option("--answer", metavar="TEXT", help="Answer what an approver asked. Needs no digest.")
@click.option("--note", default="", help="It is written to the journal beside your name.")
@click.option("--digest", help="Of the intent as you saw it. Without a terminal, or with --yes, it must be given.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@as_json
@click.pass_obj
def words(
    screen: Screen, /, run: str, seq: int, deny: bool, edit: Any, ask: str | None, answer: str | None, note: str,
    digest: str | None, yes: bool, as_json: bool,
) -> int | None:  # fmt: skip
    """Approve the intent SEQ of a run under the digest you saw; or --deny, --edit or --ask about it.

    At a terminal the exact arguments are shown and a typed y is asked for.
    """
    if edit is not None and not isinstance(edit, dict):
        raise click.UsageError("--edit takes an object: all of the arguments by name.")
    if sum((deny, edit is not None, ask is not None, answer is not None)) > 1:
        raise click.UsageError("Say one thing: --deny, --edit, --ask or --answer.")
    found = find_run(run)
    if answer is not None:
        tell_run(screen, answer_question(run_id=found.id, seq=seq, text=answer, actor=shell_actor()), as_json)
        return None
    verdict = "deny" if deny else "edit" if edit is not None else "ask" if ask is not None else "approve"
    slot = intent_of(found, seq)
    asks = screen.interactive and not yes
    if digest is None and not asks:
        raise click.UsageError("Give --digest: what you decide on, as `manage.py intents` shows it.")
    if asks and slot.state == "awaiting_approval":  # else the command says who decided what
        tell_intent(screen, found, slot)
        if not screen.sure(SURE[verdict]):
            screen.note("Nothing was decided.")
            return FAILED
        digest = digest or digest_of(slot)
    changed = decide_approval(
        run_id=found.id,
        seq=seq,
        verdict=verdict,
        digest=digest or "",
        note=note if ask is None else ask,
        args=edit,
        actor=shell_actor(),
        groups=SHELL_GROUPS,
    )
    tell_run(screen, changed, as_json)
    return None


class Command(RunsCommand):
    help = "Approve or deny an intent, under the digest you saw."
    words = words
