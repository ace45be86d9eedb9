"""Looks whether everything is in order: `manage.py doctor`."""

from __future__ import annotations

import click
from django.core.management.base import CommandError

from config.doctor import findings
from terminal.command import HELP, TerminalCommand, exit_codes
from terminal.screen import Column, Screen, Styled

COLUMNS = (Column("", keep=True), Column("what", keep=True), Column("found"))


@click.command("doctor", context_settings=HELP, epilog=exit_codes(exit_1="something must be put right"))
@click.option("--json", "as_json", is_flag=True, help='[{"what", "found", "fault"}] as strict JSON.')
@click.pass_obj
def words(screen: Screen, /, as_json: bool) -> None:
    """Look at the database, its durability, partitions, broker and versions."""
    found = list(findings())
    faults = sum(finding.fault for finding in found)
    if as_json:
        screen.json([{"what": f.what, "found": f.words, "fault": f.fault} for f in found])
    elif screen.terminal:
        marks = {True: Styled("FAULT", "bold red"), False: Styled("ok", "green")}
        screen.table(COLUMNS, ((marks[f.fault], f.what, f.words) for f in found))
    else:
        for finding in found:
            screen.line(f"{'FAULT' if finding.fault else 'ok':5}  {finding.what}: {finding.words}")
    if faults:
        raise CommandError(f"{faults} to put right.", returncode=1)


class Command(TerminalCommand):
    help = "Look at the database, its durability, partitions, broker and versions."
    words = words
