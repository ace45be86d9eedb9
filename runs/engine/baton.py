"""Who drives a run: its own thread, or the thread of its only open call, which spares two switches of threads a step.

The slice's own thread makes the first call in another thread, waits, and from then on watches: timeouts, steering, and
calls side by side stay its business. A call that ends alone drives on in its own thread, up to and including the next
call. Whoever drives holds the baton; nobody holds it while a call is under way, so the watcher can step in at any time.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from queue import Empty
from typing import TYPE_CHECKING, Any

from runs.engine.calls import Ended, drain

if TYPE_CHECKING:
    from runs.engine.flights import Flights
    from runs.engine.performing import Flight

NUDGE = object()


@dataclass(slots=True)
class Baton:
    """`carried`: a call's thread drives. `waiting`: calls that it has not made yet. `rests`: until when nothing else is
    to do. `watched`: when the watcher will look by itself. `failure` is the watcher's to raise."""

    held: threading.Lock = field(default_factory=threading.Lock)
    carried: bool = False
    waiting: list[Flight] = field(default_factory=list)
    rests: str = ""
    watched: float = 0.0
    failure: BaseException | None = None
    over: bool = False


def watch(piece: Flights, deadline: float) -> list[Any]:
    """What came into the inbox, empty at the deadline (monotonic). Meanwhile a call's thread may drive the run."""
    piece.baton.watched = deadline
    piece.baton.held.release()
    try:
        happened = [piece.inbox.get(timeout=max(0.0, deadline - time.monotonic())), *drain(piece.inbox)]
    except Empty:
        happened = []
    finally:
        piece.baton.held.acquire()
    if piece.baton.failure is not None:
        raise piece.baton.failure
    return happened


def carry_on(piece: Flights, flight: Flight, how: Ended) -> Flight | None:
    """In a call's thread, at its end: drives on if no other call is open. Returns the next call to make there."""
    baton = piece.baton
    with baton.held:
        if not flight.left:
            if not _is_alone(piece, flight):
                piece.inbox.put((flight, how))
                return None
            baton.carried, baton.rests = True, ""
            try:
                return _drive(piece, flight, how)
            except BaseException as error:
                for unmade in baton.waiting:
                    piece.flying.pop(unmade.step, None)
                baton.waiting.clear()
                baton.failure = error
                piece.inbox.put(NUDGE)
                return None
            finally:
                baton.carried = False
    return flight.ended(how)  # given up while it waited for the baton


def _is_alone(piece: Flights, flight: Flight) -> bool:
    baton = piece.baton
    only = len(piece.flying) == 1 and piece.flying.get(flight.step) is flight
    idle = not baton.over and baton.failure is None and piece.inbox.empty()
    return only and idle and not piece.worker.calls.crowded


def _drive(piece: Flights, flight: Flight, how: Ended) -> Flight | None:
    baton = piece.baton
    del piece.flying[flight.step]
    piece.note_end(flight, how)
    while piece.parked is None and not baton.rests:
        piece.turn()
    made, baton.waiting = baton.waiting, []
    if baton.rests == "until it lands" and len(made) == len(piece.flying) == 1:
        if made[0].deadline < baton.watched:
            piece.inbox.put(NUDGE)
        return made[0]
    for each in made:
        piece.worker.calls.start(each)
    piece.inbox.put(NUDGE)
    return None
