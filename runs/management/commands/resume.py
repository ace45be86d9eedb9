"""Lifts a hold, a brake or a divergence: `manage.py resume r-7K3M9Q2A --reason 'the bank is back'`."""

from runs.commands import resume_run
from runs.management.arguments import RunsCommand, control_words


class Command(RunsCommand):
    help = "Resume a held run: lifts a hold, a brake or a divergence. The last line printed is its id."
    words = control_words("resume", resume_run, help, reason="resumed on the command line")
