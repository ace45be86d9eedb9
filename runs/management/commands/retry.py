"""Tries again at once: `manage.py retry r-7K3M9Q2A --reason 'the service is back'`."""

from runs.commands import retry_run
from runs.management.arguments import RunsCommand, control_words


class Command(RunsCommand):
    help = "Try again at once what a run waits to try again."
    words = control_words("retry", retry_run, help)
