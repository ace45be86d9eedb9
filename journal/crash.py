"""Named places where a test can kill the process. HOLDFAST_CRASH="name" or "name:3" kills it there the third time."""

import os
import signal
from collections.abc import Callable


class Crashed(BaseException):
    """Raised by a hook: the process is to be thought of as dead. Nothing may catch it to go on."""


# Tests in one process set this; it raises Crashed to abandon the worker at that place.
hook: Callable[[str], None] | None = None

_name, _, _left = os.environ.get("HOLDFAST_CRASH", "").partition(":")
_remaining = int(_left or 1)


def crash_point(name: str) -> None:
    """Does nothing unless a test asked for a death here."""
    if hook is not None:
        hook(name)
    if name == _name:
        _die_at_the_last()


def _die_at_the_last() -> None:
    global _remaining
    _remaining -= 1
    if _remaining == 0:
        os.kill(os.getpid(), signal.SIGKILL)
        signal.pause()  # the signal comes at once, but not before this line in every kernel
