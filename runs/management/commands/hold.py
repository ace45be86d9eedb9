"""Holds a run: `manage.py hold r-7K3M9Q2A --reason 'ask the customer first'`."""

from runs.commands import hold_run
from runs.management.arguments import RunsCommand, control_words


class Command(RunsCommand):
    help = "Hold a run: it stops at its next checkpoint until somebody resumes it."
    words = control_words("hold", hold_run, help)
