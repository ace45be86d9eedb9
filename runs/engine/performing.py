"""Performing: the jobs that touch the world, and what the journal says of how they ended."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from uuid import UUID

from journal.crash import crash_point
from journal.encoding import encode
from journal.entries import Draft, Kind
from journal.errors import PayloadStoreDown
from runs.engine import drafts
from runs.engine.asking import Asking, Line
from runs.engine.calls import Ended, Raised, Returned, finish
from runs.outcomes import Absent, Found, PermanentError, TransientError, Undecided, describe
from runs.secrets import SecretUnreadable, in_use, redacted, struck, words_of
from runs.slots import Slot
from runs.tools import Cancelled, Tool, ToolContext

if TYPE_CHECKING:
    from runs.engine.worker import Worker

MODEL_STEP = 0
SCALARS = (str, int, float, bool, type(None))


class TimedOut(TimeoutError):
    """The call did not answer within its timeout."""


@dataclass(slots=True, eq=False)
class Flight:
    """A job under way for a slice: `step` 0 is the model's. `left`: nobody waits for it any more."""

    worker: Worker
    run_id: UUID
    slot: Slot | None
    tool: Tool | None
    epoch: int
    deadline: float
    landed: Callable[[Flight, Ended], Flight | None]
    ctx: ToolContext | None = None
    asking: Asking | None = None
    probing: bool = False
    left: bool = False
    secrets: tuple[str, ...] = ()  # as text: what may not be read in what comes of it
    cancelled: Cancelled = field(default_factory=Cancelled)
    asked: int = 0  # the seq of a model's ATTEMPT
    typed: bool = False  # a model wrote the arguments, in JSON: the tool gets values of its types

    @property
    def step(self) -> int:
        return self.slot.step if self.slot else MODEL_STEP

    def run(self) -> Any:
        if self.asking is not None:
            crash_point("before-model")
            said = self.asking.ask(Line(self.deadline, self.cancelled, self.hear))
            crash_point("after-model")
            return said
        assert self.tool is not None and self.slot is not None
        try:
            self.secrets = tuple(words_of(self.slot.args))
        except SecretUnreadable as error:
            raise TransientError(str(error)) from error  # nothing was sent: another worker may have the key
        if self.probing:
            crash_point("before-probe")
            assert self.ctx is not None
            with in_use(own_args(self.slot)) as args:
                found = finish(self.tool.ask(self.ctx, self.tool.typed(args) if self.typed else args))
            crash_point("after-probe")
            return found
        if not self.worker.session.alive:
            raise LeaseLapsed
        crash_point("before-effect")
        assert self.ctx is not None
        with in_use(own_args(self.slot)) as args:
            result = finish(self.tool.perform(self.ctx, self.tool.typed(args) if self.typed else args))
        crash_point("after-effect")
        return result

    def hear(self, text: str, thinking: str) -> None:
        """What of a model's answer has come so far, for whoever watches."""
        if not self.left:
            self.worker.under_way.hear(self.run_id, self.epoch, self.asked, text, thinking)

    def ended(self, how: Ended) -> Flight | None:
        if not self.left:
            return self.landed(self, how)
        self.worker.calls.came_back()
        if self.slot is not None and not self.probing:
            self.worker.keep_evidence(self.run_id, self.epoch, outcome_of(self, how, 0.0))
        return None


def own_args(slot: Slot) -> dict[str, Any]:
    """A tool may change what it is given; the run's state must not change with it."""
    nested = any(type(value) not in SCALARS for value in slot.args.values())
    return deepcopy(slot.args) if nested else slot.args


class LeaseLapsed(BaseException):
    """The worker's lease may have run out: it must not touch the world any more."""


def outcome_of(flight: Flight, how: Ended, now: float) -> Draft:
    """The OBS or ERROR that tells how a call ended. `now`: POSIX seconds, for when the next attempt is due."""
    return without_secrets(flight, plain_outcome(flight, how, now))


def without_secrets(flight: Flight, draft: Draft) -> Draft:
    if flight.secrets or redacted():
        draft.body = struck(draft.body, flight.secrets)
    return draft


def plain_outcome(flight: Flight, how: Ended, now: float) -> Draft:
    slot, tool = flight.slot, flight.tool
    assert slot is not None and tool is not None
    if isinstance(how, Returned):
        body = {"outcome": "succeeded", "result": how.value, "source": "worker"}
        if (warning := tool.result_fault(how.value)) is not None:
            body["warning"] = warning
        return drafts.observation(slot.step, body)
    error = how.error
    said = describe(error)
    doubt = slot.attempts[-1].doubt
    if isinstance(error, PermanentError) and doubt:
        body = {"outcome": "unknown", "error": said, "source": "worker", "refused": True}
        return drafts.observation(slot.step, body)
    if isinstance(error, PermanentError):
        return drafts.observation(slot.step, {"outcome": "failed", "error": said, "source": "worker"})
    if isinstance(error, TransientError) or tool.effect == "read":
        return try_again(slot, tool, said, getattr(error, "retry_after", None), now)
    return drafts.observation(slot.step, {"outcome": "unknown", "error": said, "source": "worker"})


def try_again(slot: Slot, tool: Tool, error: str, retry_after: float | None, now: float) -> Draft:
    number = len(slot.attempts)
    if number >= tool.retry.attempts:
        outcome = "unknown" if slot.attempts[-1].doubt else "failed"
        body = {"outcome": outcome, "error": f"{error} (after {number} attempts)", "source": "worker"}
        return drafts.observation(slot.step, body)
    return drafts.failure(slot.step, error, now + max(tool.retry.wait(number, slot.key), retry_after or 0.0))


def finding_of(flight: Flight, how: Ended) -> list[Draft]:
    """What a probe found out. An empty list: absent, so the call may be sent."""
    assert flight.slot is not None
    slot = flight.slot
    match how:
        case Returned(Found(result)):
            body = {"outcome": "succeeded", "result": result, "source": "probe"}
            said = {"verdict": "happened", "evidence": "asked by key, the tool found it"}
            settled = Draft(Kind.RECONCILE, said, step=slot.step, actor=drafts.SYSTEM)  # for the list of what settled
            return [settled, without_secrets(flight, drafts.observation(slot.step, body))]
        case Returned(Absent()):
            return []
        case Returned(Undecided(why)):
            pass
        case Returned(other):
            why = f"the probe returned {type(other).__name__}, not Found, Absent or Undecided"
        case Raised(error):
            why = describe(error)
    body = {"verdict": "undecided", "evidence": why}
    return [without_secrets(flight, Draft(Kind.RECONCILE, body, step=slot.step, actor=drafts.SYSTEM))]


def stored(worker: Worker, run_id: UUID, draft: Draft) -> tuple[Draft, list[Draft]]:
    """The draft, encoded, its large values in the payload store, and what has to be said if the store is down.

    An effect's result is never lost to a store that is down: it is tried while the lease lives, then the OBS says that
    the result was not stored, and the run is held.
    """
    draft.data = encode(draft.body)
    if len(draft.data) <= worker.store.limit:
        return draft, []
    while True:
        try:
            draft.body = worker.store.offload(run_id, draft.body)
            draft.data = encode(draft.body)
            return draft, []
        except PayloadStoreDown as error:
            if draft.kind == Kind.OBS and (
                not worker.session.alive or worker.session.lapses_in < worker.session.lease / 3
            ):
                value = encode(draft.body.pop("result", None))
                lost = {"sha256": hashlib.sha256(value).hexdigest(), "size": len(value)}
                draft.body |= {"result": None, "not_stored": lost}
                draft.data = encode(draft.body)
                return draft, [drafts.control("hold", f"the result of step {draft.step} was not stored: {error}")]
            worker.pause(0.2)
