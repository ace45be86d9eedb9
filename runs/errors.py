"""What the runs room refuses. The docstring is the message; attributes tell who, what and when."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from runs.models import Release


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


class ReleaseTakesNoRuns(RunsError):
    """No new run can be started under this release."""

    def __init__(self, release: str, stage: str, current: str | None) -> None:
        instead = f"{current} is current: start under it, or name no release" if current else "promote a release first"
        super().__init__(f"{release} is {stage}; {instead}.")
        self.release, self.stage, self.current = release, stage, current


class NoCurrentRelease(RunsError):
    """No release of this agent takes new runs."""

    def __init__(self, agent: str, known: Sequence[str]) -> None:
        super().__init__(f"Promote one of {', '.join(known)}, or name one of its candidates in `release`.")
        self.agent = agent


class ReleaseNotFound(RunsError):
    """There is no such release."""


class ReleaseUnserved(RunsError):
    """No live worker serves this release."""

    def __init__(self, release: str, otherwise: str = "") -> None:
        super().__init__(f"Start a worker that serves {release} first{otherwise}.")
        self.release = release


class ReleaseNeeded(RunsError):
    """This release cannot retire: something still needs it."""

    def __init__(self, release: str, needs: Sequence[str]) -> None:
        super().__init__(f"{release}: {'; '.join(needs)}.")
        self.release, self.needs = release, list(needs)


class CanaryTaken(RunsError):
    """The agent has a canary already: promote that one, or set its share to 0 first."""

    def __init__(self, canary: str, share: int, by: str, at: datetime) -> None:
        super().__init__(f"{canary} takes {share} of 100 new runs, by {by} at {at:%Y-%m-%d %H:%M:%S} UTC.")
        self.canary, self.share, self.by, self.at = canary, share, by, at


class CanaryIsCurrent(RunsError):
    """This release is current and takes all new runs: promote another one, or roll back."""


class ShareInvalid(RunsError):
    """The share of a canary is a whole number from 0 to 100."""


class NothingBefore(RunsError):
    """There is no release to roll back to: promote the one that you want."""

    def __init__(self, agent: str, current: Release | None) -> None:
        if current is None:
            super().__init__(f"({agent[:60]} has no current release)")
            return
        super().__init__(f"{current} is current, by {current.staged_by} at {current.staged_at:%Y-%m-%d %H:%M:%S} UTC.")
        self.current, self.by, self.at = str(current), current.staged_by, current.staged_at


class BadInput(RunsError):
    """This cannot be journaled."""


class InputRefused(BadInput):
    """The agent does not take this input:"""

    MOST_TOLD = 5

    def __init__(self, faults: Sequence[tuple[str, str]]) -> None:
        told = "; ".join(f"{place}: {message}" for place, message in faults[: self.MOST_TOLD])
        more = f"; and {len(faults) - self.MOST_TOLD} more" if len(faults) > self.MOST_TOLD else ""
        super().__init__(f"{told}{more}.")
        self.errors = [{"field": place, "message": message} for place, message in faults]


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
    """The approval expired before it was decided; your answer was not written. A retry of the run asks for it anew."""

    def __init__(self, at: datetime) -> None:
        super().__init__(f"It expired at {at:%Y-%m-%d %H:%M:%S} UTC.")
        self.verdict, self.at = "expired", at


class NotYourApproval(RunsError):
    """This approval is for the members of another group."""

    def __init__(self, group: str) -> None:
        super().__init__(f"The group is {group}.")
        self.group = group


class FourEyes(RunsError):
    """Somebody else has to approve this: it needs four eyes."""


class QuestionOpen(RunsError):
    """An approver asked something about this first; until it is answered, it can only be rejected."""

    def __init__(self, actor: str, question: str, at: datetime) -> None:
        super().__init__(f"{actor} asked at {at:%Y-%m-%d %H:%M:%S} UTC: {question}")
        self.actor, self.question, self.at = actor, question, at


class NoQuestionOpen(RunsError):
    """No approver waits for an answer about this."""


class EditTooLate(RunsError):
    """The arguments can be changed before the first attempt only."""

    def __init__(self, at: datetime) -> None:
        super().__init__(f"It was sent at {at:%Y-%m-%d %H:%M:%S} UTC.")
        self.at = at


class EditInvalid(RunsError):
    """The tool does not take these arguments."""

    def __init__(self, faults: Mapping[str, str]) -> None:
        super().__init__(" ".join(f"{field}: {fault}" for field, fault in faults.items())[:2000])
        self.errors = [{"field": field, "message": fault} for field, fault in faults.items()]


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


class BulkVerbUnknown(RunsError):
    """There is no such bulk act."""


class BulkTarget(RunsError):
    """It cannot be ordered so:"""

    SAID = {
        "needed": "name the release that the runs are to be moved to.",
        "useless": "a release is named for a move alone.",
        "not judged": "the act that is named has not judged runs for this release.",
    }

    def __init__(self, why: str) -> None:
        super().__init__(self.SAID[why])


class BulkNotFound(RunsError):
    """There is no such bulk act."""


class BulkEmpty(RunsError):
    """Nothing was ordered: there is no run that matches and on which this could act."""


class BulkEnded(RunsError):
    """The bulk act is over: there is nothing to stop."""


class BulkTooLarge(RunsError):
    """Nothing was ordered: too many runs match for one act; narrow the query."""

    def __init__(self, most: int) -> None:
        super().__init__(f"One act takes in at most {most:,}.")
        self.most = most


class BulkUncounted(RunsError):
    """Nothing was ordered: count first (dry_run), and say in `expected` on how many it may act at most."""


class BulkCountChanged(RunsError):
    """Nothing was ordered: more runs match now than were counted; look again."""

    def __init__(self, expected: int, acts: int) -> None:
        super().__init__(f"{expected:,} were counted, {acts:,} match now.")
        self.expected, self.acts = expected, acts


class ToolNotFound(RunsError):
    """This agent has no such tool."""


class AgentNotFound(RunsError):
    """No worker has announced an agent of this name."""
