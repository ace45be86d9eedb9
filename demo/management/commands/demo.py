import random
import signal
import threading
import time
from typing import Any

from django.core.management.base import BaseCommand, CommandParser
from django.db import InterfaceError, OperationalError, connection

from demo.agents.support import support, support_of_a_real_model
from demo.people import let_people_act
from demo.traffic import Part, programme
from runs.errors import ReleaseNotFound, ReleaseUnserved
from runs.models import ENDED, Run, Status
from runs.sdk import start
from runs.stages import promote_release
from runs.staging import current_of

LONGEST_NAP = 2.0


class Command(BaseCommand):
    help = "Keeps the demo's agents busy. Slows down with time, and waits while too many runs are unfinished."
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--every", type=float, default=4.0, help="seconds between the first refunds")
        parser.add_argument("--count", type=int, help="end after so many runs (default: never)")

    def handle(self, *args: Any, every: float, count: int | None, **options: Any) -> None:
        stopping = threading.Event()  # an exception out of a signal handler may be lost in whatever it interrupts
        signal.signal(signal.SIGTERM, lambda *_: stopping.set())
        began, started = time.monotonic(), 0
        parts = programme(every)
        due = {part.agent: began + part.first for part in parts}
        begun = dict.fromkeys(due, 0)
        chosen = False
        while not stopping.is_set() and (count is None or started < count):
            try:
                let_people_act()
                chosen = chosen or promote_support()
                ready = [part for part in parts if chosen or part.agent != support.name]
                for part in (part for part in ready if due[part.agent] <= time.monotonic() and started != count):
                    begun[part.agent] += (new := start_one(part))
                    started += new
                    due[part.agent] = time.monotonic() + part.pause(begun[part.agent])
            except (OperationalError, InterfaceError) as error:
                # The database may be away for a while; the demo is the last to complain.
                self.stderr.write(f"demo: {str(error).splitlines()[0]}")
                connection.close()
            if started != count:
                stopping.wait(min(LONGEST_NAP, max(0.01, min(due.values()) - time.monotonic())))


def start_one(part: Part) -> bool:
    """Whether a run was started; not while enough are under way."""
    runs = Run.objects.filter(agent=part.agent)
    if runs.exclude(status__in=ENDED)[: part.unfinished_at_most].count() >= part.unfinished_at_most:
        return False
    awaiting = runs.filter(status=Status.AWAITING_APPROVAL).count()
    start(part.agent, part.brief(random.Random(), awaiting))
    return True


def promote_support() -> bool:
    """Whether new tickets go to the model that this demo was started with: the one before may have been another."""
    wanted = support_of_a_real_model or support
    if current_of(support.name) is None:
        return wanted is support  # announced by the first that is started
    try:
        promote_release(release_id=wanted.release_id, reason="the demo was started with its model", actor="demo")
    except (ReleaseNotFound, ReleaseUnserved):
        return False  # its worker is still coming up
    return True
