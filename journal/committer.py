"""Group commit: one statement commits what queued while the last commit ran.

There is no committer thread in the common case. If nobody is committing, the calling thread leads: it sends what is
queued, its own append among it, and when its own is answered hands the lead to the next in the queue. So one append in
flight costs no switch of threads, and fifty are one commit. A run has one append on its way at a time; a batch has at
most one append a run. A run whose head is locked is tried again, after a second on a second connection that waits.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from uuid import UUID

from journal.crash import crash_point
from journal.entries import Answer
from journal.errors import CommitterClosed
from journal.lane import Append, Lane, Projection, Ticket

__all__ = ["Answer", "Append", "Committer", "Projection"]

_BUSY_PAUSE = 0.005  # seconds before a batch of nothing but busy runs is tried again
_CLOSING = 5.0  # seconds that close() lets a batch on its way take


class Committer:
    """One a process. `limit`: appends a batch; `patience`: seconds a run may be busy before it goes to the waiting
    connection."""

    def __init__(self, dsn: str, projection: Projection | None = None, limit: int = 200, patience: float = 1.0) -> None:
        self._limit, self._patience = limit, patience
        self._stopping = threading.Event()
        self._lock = threading.Lock()  # guards all below; never held while a statement runs
        self._changed = threading.Condition(self._lock)
        # Every append of a run in order; the first is ready, stuck or on its way.
        self._lines: dict[UUID, deque[Ticket]] = {}
        self._ready: deque[Ticket] = deque()
        self._stuck: deque[Ticket] = deque()
        self._leader: Ticket | threading.Thread | None = None
        self._helper: threading.Thread | None = None
        self._waiter: threading.Thread | None = None
        self._hot = Lane(dsn, 100, projection, self._stopping)
        self._patient = Lane(dsn, 1000, projection, self._stopping)

    def connect(self) -> None:
        """Connects now: a process that can have no connection should hear of it before it holds a run. Raises
        psycopg.OperationalError."""
        self._hot.connect()

    def append(self, append: Append) -> Answer:
        """Blocks until the append is answered. Raises what the database said to a faulty entry, and CommitterClosed."""
        ticket = Ticket(append)
        with self._lock:
            leads = self._enqueue(ticket)
        if leads:
            self._lead(ticket)
        while ticket.answer is None and ticket.error is None:
            self._wait(ticket)
        if ticket.error is not None:
            raise ticket.error
        assert ticket.answer is not None
        return ticket.answer

    def submit(self, append: Append) -> Future[Answer]:
        """As `append`, without waiting."""
        ticket = Ticket(append, Future())
        with self._lock:
            if self._enqueue(ticket):
                self._appoint()
        assert ticket.future is not None
        return ticket.future

    def close(self) -> None:
        """Lets a batch on its way end, fails what waits with CommitterClosed, closes the connections."""
        with self._lock:
            self._stopping.set()
            failed = self._give_up(lambda ticket: not ticket.on_its_way)
            self._changed.notify_all()
        _fail(failed)
        deadline = time.monotonic() + _CLOSING
        while not self._at_rest(deadline - time.monotonic()):
            for lane in (self._hot, self._patient):
                lane.hang_up()
            deadline = time.monotonic() + 0.1
        for lane in (self._hot, self._patient):
            lane.close()

    # ---- the queue; the lock is held ---------------------------------------------------------------------------------

    def _enqueue(self, ticket: Ticket) -> bool:
        """True if the caller is to see that somebody leads."""
        if self._stopping.is_set():
            raise CommitterClosed
        line = self._lines.setdefault(ticket.append.run_id, deque())
        line.append(ticket)
        if len(line) > 1:
            return False
        self._ready.append(ticket)
        if self._leader is not None:
            return False
        if ticket.future is None:
            self._leader = ticket
        return True

    def _appoint(self) -> None:
        """Wakes the owner of the next append to lead; one that nobody waits for is led by a helper thread."""
        if self._leader is not None or not self._ready or self._stopping.is_set():
            return
        ticket = self._ready[0]
        if ticket.future is None:
            self._leader = ticket
            _wake(ticket)
            return
        if self._helper is None:
            self._helper = threading.Thread(target=self._help, name="committer-helper", daemon=True)
            self._helper.start()
        self._leader = self._helper
        self._changed.notify_all()

    def _take(self, queue: deque[Ticket], limit: int) -> list[Ticket]:
        batch = [queue.popleft() for _ in range(min(len(queue), limit))]
        for ticket in batch:
            ticket.on_its_way = True
        return batch

    def _settle(self, sent: Iterable[tuple[Ticket, Answer | Exception]]) -> list[Ticket]:
        """Puts busy appends back, lets the next of each other run follow. Returns what is answered."""
        now, done = time.monotonic(), []
        for ticket, answer in sent:
            ticket.on_its_way = False
            if isinstance(answer, Answer) and answer.verdict == "busy" and not self._stopping.is_set():
                ticket.busy_since = ticket.busy_since or now
                self._put_back(ticket, stuck=now - ticket.busy_since >= self._patience)
                continue
            if isinstance(answer, Exception):
                ticket.error = answer
            elif answer.verdict == "busy":
                ticket.error = CommitterClosed()
            else:
                ticket.answer = answer
            done.append(ticket)
            line = self._lines[ticket.append.run_id]
            line.popleft()
            if line:
                self._ready.append(line[0])
            else:
                del self._lines[ticket.append.run_id]
        return done

    def _put_back(self, ticket: Ticket, *, stuck: bool) -> None:
        if not stuck:
            self._ready.append(ticket)
            return
        self._stuck.append(ticket)
        if self._waiter is None:
            self._waiter = threading.Thread(target=self._wait_for_heads, name="committer-waiter", daemon=True)
            self._waiter.start()
        self._changed.notify_all()

    def _give_up(self, which: Callable[[Ticket], bool]) -> list[Ticket]:
        failed = [ticket for line in self._lines.values() for ticket in line if which(ticket)]
        for ticket in failed:
            ticket.error = CommitterClosed()
            self._lines[ticket.append.run_id].remove(ticket)
        self._lines = {run: line for run, line in self._lines.items() if line}
        self._ready.clear()
        self._stuck.clear()
        return failed

    # ---- threads -----------------------------------------------------------------------------------------------------

    def _lead(self, own: Ticket | None) -> None:
        """Sends batches until the own append is answered or waits elsewhere (None: until none is left)."""
        try:
            while True:
                with self._lock:
                    batch = self._take(self._ready, self._limit)
                sent = self._send(self._hot, batch)
                if all(isinstance(answer, Answer) and answer.verdict == "busy" for _, answer in sent):
                    self._stopping.wait(_BUSY_PAUSE)
                with self._lock:
                    done = self._settle(sent)
                    over = own not in self._ready if own is not None else not self._ready
                    if over or self._stopping.is_set():
                        self._leader = None
                        self._appoint()  # before the others wake: the database should not wait for them
                        self._changed.notify_all()
                self._tell(done)
                if over or self._stopping.is_set():
                    return
        except BaseException:
            self._abandon()
            raise

    def _wait(self, ticket: Ticket) -> None:
        """Waits for the answer or the lead."""
        try:
            ticket.gate.acquire()
        except BaseException:  # e.g. Ctrl-C: the append stays, with nobody to lead for it
            with self._lock:
                ticket.future = Future()
                if self._leader is ticket:
                    self._leader = None
                    self._appoint()
            raise
        if self._leader is ticket:
            self._lead(ticket)

    def _help(self) -> None:
        """Leads for appends that nobody waits for."""
        while True:
            with self._lock:
                self._changed.wait_for(lambda: self._leader is self._helper or self._stopping.is_set())
                if self._leader is not self._helper:
                    return
            try:
                self._lead(None)
            except BaseException:  # told to all who wait by _abandon
                return

    def _wait_for_heads(self) -> None:
        """The second lane: one run at a time, waiting for its head up to a second."""
        try:
            while True:
                with self._lock:
                    self._changed.wait_for(lambda: self._stuck or self._stopping.is_set())
                    if self._stopping.is_set():
                        self._waiter = None
                        self._changed.notify_all()
                        return
                    batch = self._take(self._stuck, 1)
                sent = self._send(self._patient, batch, hold=batch[0].append.run_id)
                with self._lock:
                    done = self._settle(sent)
                    self._appoint()
                self._tell(done)
        except BaseException:  # told to all who wait by _abandon
            self._abandon()

    def _send(
        self, lane: Lane, batch: list[Ticket], hold: UUID | None = None
    ) -> Sequence[tuple[Ticket, Answer | Exception]]:
        if not batch:
            return ()
        crash_point("before-commit")
        try:
            sent = lane.send(batch, hold)
        except CommitterClosed as closed:
            return [(ticket, closed) for ticket in batch]
        crash_point("after-commit")
        return sent

    def _tell(self, done: list[Ticket]) -> None:
        for ticket in done:
            if ticket.future is None:
                _wake(ticket)
            elif ticket.error is not None:
                ticket.future.set_exception(ticket.error)
            else:
                ticket.future.set_result(ticket.answer)  # type: ignore[arg-type]

    def _abandon(self) -> None:
        """A thread was torn out of its work: nobody may wait for it for ever."""
        with self._lock:
            self._stopping.set()
            failed = self._give_up(lambda ticket: True)
            self._leader = self._waiter = None
            self._changed.notify_all()
        _fail(failed)

    def _at_rest(self, timeout: float) -> bool:
        with self._lock:
            return self._changed.wait_for(lambda: self._leader is None and self._waiter is None, max(timeout, 0))


def _wake(ticket: Ticket) -> None:
    if ticket.gate.locked():
        ticket.gate.release()


def _fail(tickets: list[Ticket]) -> None:
    for ticket in tickets:
        if ticket.future is None:
            _wake(ticket)
        elif not ticket.future.done():
            ticket.future.set_exception(CommitterClosed())
