"""Cancels a run: `manage.py cancel r-7K3M9Q2A --reason 'ordered twice'`."""

from runs.commands import cancel_run
from runs.management.arguments import RunsCommand, control_words


class Command(RunsCommand):
    help = "Cancel a run and its children: no new call starts, an open one is awaited or reconciled."
    words = control_words("cancel", cancel_run, help)
