import random
import signal
import time
from types import FrameType
from typing import Any

from django.core.management.base import BaseCommand, CommandParser
from django.db import InterfaceError, OperationalError, connection

from demo.agents.refund_desk import refund_desk
from demo.traffic import UNFINISHED_AT_MOST, linger_now_and_then, next_order, pause
from runs.models import ENDED, Run, Status
from runs.sdk import start


class Command(BaseCommand):
    help = "Keeps some refund-desk runs going. Slows down with time, and waits while too many are unfinished."
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--every", type=float, default=4.0, help="seconds between the first runs")
        parser.add_argument("--count", type=int, help="end after so many runs (default: never)")

    def handle(self, *args: Any, every: float, count: int | None, **options: Any) -> None:
        signal.signal(signal.SIGTERM, _leave)
        started = 0
        while count is None or started < count:
            try:
                started += self.start_one()
            except (OperationalError, InterfaceError) as error:
                # The database may be away for a while; the demo is the last to complain.
                self.stderr.write(f"demo: {str(error).splitlines()[0]}")
                connection.close()
            if started != count:
                time.sleep(pause(every, started))

    def start_one(self) -> bool:
        """Whether a run was started; not while enough are under way."""
        runs = Run.objects.filter(agent=refund_desk.name)
        if runs.exclude(status__in=ENDED)[:UNFINISHED_AT_MOST].count() >= UNFINISHED_AT_MOST:
            return False
        awaiting = runs.filter(status=Status.AWAITING_APPROVAL).count()
        linger_now_and_then(random.Random())
        start(refund_desk.name, {"order_id": next_order(random.Random(), awaiting)})
        return True


def _leave(_signal: int, _frame: FrameType | None) -> None:
    raise SystemExit
