"""Lifts a quarantine: `manage.py unquarantine r-7K3M9Q2A --reason 'the worker has more memory now'`.

The API and the pages call this act "release"; here that word is taken by the releases of agents.
"""

from runs.commands import release_run
from runs.management.arguments import RunsCommand, control_words


class Command(RunsCommand):
    help = "Let a run out of quarantine (the API's release): its crashes are counted anew."
    words = control_words("unquarantine", release_run, help)
