"""What the runs room refuses. The docstring is the message; attributes tell who, what and when."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime


class RunsError(Exception):
    """Refused."""

    def __init__(self, detail: str = "") -> None:
        self.detail = detail
        super().__init__(detail)

    def __str__(self) -> str:
        said = (type(self).__doc__ or "").strip().splitlines()[0]
        return f"{said} {self.detail}".strip()


class UnknownAgent(RunsError):
    """No agent of this name is known here."""


class UnknownRelease(RunsError):
    """The agent has no such release."""


class BadInput(RunsError):
    """This cannot be journaled."""


class StatelessRun(RunsError):
    """This run has no journal: it can be cancelled, and started again."""


class RequestKeyTaken(RunsError):
    """A run was started under this request key with other content."""

    def __init__(self, run_id: str) -> None:
        super().__init__(f"It is {run_id}.")
        self.run_id = run_id


class BusinessIdTaken(RunsError):
    """Only one open run of this agent may have this label."""

    def __init__(self, business_id: str, run_id: str | None) -> None:
        super().__init__(f"{business_id} belongs to {run_id or 'a run that has just ended: try again'}.")
        self.business_id, self.run_id = business_id, run_id


class RunNotFound(RunsError):
    """There is no such run."""


class RunAmbiguous(RunsError):
    """This short id names more than one run; use the whole id."""

    def __init__(self, candidates: Sequence[str]) -> None:
        super().__init__(f"It may be {', '.join(candidates)}.")
        self.candidates = list(candidates)


class JournalDamaged(RunsError):
    """The journal of this run is damaged: an entry is missing. journal verify names every fault."""

    def __init__(self, seq: int) -> None:
        super().__init__(f"(entry {seq})")
        self.seq = seq


class RunEnded(RunsError):
    """The run has ended; its ending never changes."""

    def __init__(self, status: str, at: datetime | None) -> None:
        super().__init__(f"It is {status}{f' since {at:%Y-%m-%d %H:%M:%S} UTC' if at else ''}.")
        self.run_status, self.at = status, at


class NotHeld(RunsError):
    """The run is not held: there is nothing to resume."""


class NotQuarantined(RunsError):
    """The run is not quarantined: there is nothing to release."""


class ReasonMissing(RunsError):
    """Give a reason: it is written to the journal beside your name."""


class IntentNotFound(RunsError):
    """The run has no intent at this seq."""


class DigestMissing(RunsError):
    """Send the digest of what you decide on, as the intent shows it."""


class DigestMismatch(RunsError):
    """What would run is not what you saw; look again."""

    def __init__(self, digest: str) -> None:
        super().__init__(f"Its digest is {digest}.")
        self.digest = digest


class AlreadyDecided(RunsError):
    """Somebody decided this first; your answer was not written."""

    def __init__(self, actor: str, verdict: str, at: datetime) -> None:
        super().__init__(f"{actor}: {verdict}, at {at:%Y-%m-%d %H:%M:%S} UTC.")
        self.actor, self.verdict, self.at = actor, verdict, at


class AskNotFound(RunsError):
    """The run asks no such question."""


class AlreadyAnswered(RunsError):
    """The question was settled before; your answer was not written."""

    def __init__(self, actor: str, verdict: str, at: datetime) -> None:
        super().__init__(f"{actor}: {verdict}, at {at:%Y-%m-%d %H:%M:%S} UTC.")
        self.actor, self.verdict, self.at = actor, verdict, at


class AskExpired(AlreadyAnswered):
    """The question expired before it was answered; your answer was not written."""


class AnswerInvalid(RunsError):
    """This is no answer to the question."""


class SignalIdTaken(RunsError):
    """A signal with this id came before, with another payload; this one was not written."""

    def __init__(self, signal_id: str, at: datetime) -> None:
        super().__init__(f"{signal_id} came at {at:%Y-%m-%d %H:%M:%S} UTC.")
        self.signal_id, self.at = signal_id, at


class NotRetrying(RunsError):
    """Nothing of this run waits to be tried again."""


class NotAwaitingApproval(RunsError):
    """This intent does not wait for approval."""


class ApprovalExpired(RunsError):
    """The approval expired before it was decided."""


class VerdictUnknown(RunsError):
    """There is no such verdict."""


class GateScopeUnknown(RunsError):
    """A gate's scope is all, agent:X, release:X@V, worker:W, region:R or tool:T."""


class GateExists(RunsError):
    """This scope has a gate already."""

    def __init__(self, scope: str, gate_id: int, actor: str, reason: str, at: datetime) -> None:
        super().__init__(f"{actor} placed gate {gate_id} on {scope} at {at:%Y-%m-%d %H:%M:%S} UTC: {reason}")
        self.gate_id, self.actor, self.at = gate_id, actor, at


class GateNotFound(RunsError):
    """There is no such open gate."""


class CursorUnknown(RunsError):
    """This cursor is not one that this list gave."""

    def __init__(self, cursor: str) -> None:
        super().__init__(f"({cursor[:60]!r})")
        self.path = "cursor"


class QueryInvalid(RunsError):
    """The query cannot be read."""

    def __init__(self, said: str, position: int, length: int = 1) -> None:
        super().__init__(said)
        self.said, self.position, self.length, self.field = said, position, max(length, 1), "query"


class AgentNotFound(RunsError):
    """No worker has announced an agent of this name."""
