"""What the recovery room refuses. The docstring is the message; config/errors.py has the HTTP status."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any


class RecoveryError(Exception):
    """Refused."""

    def __init__(self, detail: str = "") -> None:
        self.detail = detail
        super().__init__(detail)

    def __str__(self) -> str:
        said = (type(self).__doc__ or "").strip().splitlines()[0]
        return f"{said} {self.detail}".strip()


class NotInDoubt(RecoveryError):
    """This intent is not in doubt: nobody has to say what happened."""


class AlreadyReconciled(RecoveryError):
    """Somebody settled this first; your answer was not written."""

    def __init__(self, actor: str, verdict: str, at: datetime) -> None:
        super().__init__(f"{actor}: {verdict}, at {at:%Y-%m-%d %H:%M:%S} UTC.")
        self.actor, self.verdict, self.at = actor, verdict, at


class AttemptOutdated(RecoveryError):
    """It was sent again since you looked; look again."""

    def __init__(self, judged: int, last: int) -> None:
        super().__init__(f"You judged attempt {judged}, the last is {last}.")
        self.judged, self.last = judged, last


class EvidenceMissing(RecoveryError):
    """Say how you know: the evidence is written to the journal beside your name."""


class CannotProbe(RecoveryError):
    """This tool cannot be asked by key: say yourself what happened."""


class ResultInvalid(RecoveryError):
    """This is not what the tool returns:"""

    MOST_TOLD = 5

    def __init__(self, faults: list[str]) -> None:
        more = f"; and {len(faults) - self.MOST_TOLD} more" if len(faults) > self.MOST_TOLD else ""
        super().__init__("; ".join(faults[: self.MOST_TOLD]) + f"{more}.")
        self.faults = faults[: self.MOST_TOLD]


class FileTooLarge(RecoveryError):
    """A file as evidence may have 10,485,760 bytes."""


class FileUnreadable(RecoveryError):
    """The file is no whole base64."""


class EvidenceUseless(RecoveryError):
    """This late result does not say what became of the call: it cannot be adopted."""


class PinnedAlready(RecoveryError):
    """The run is pinned to this release already."""


class OtherAgent(RecoveryError):
    """This is a release of another agent."""


class ReleaseRetired(RecoveryError):
    """This release is retired: no run is moved to it."""


class RunDriven(RecoveryError):
    """A worker is executing this run: hold it, or drain its release, and move it then."""

    def __init__(self, worker: str) -> None:
        super().__init__(f"({worker})")
        self.worker = worker


class PinRefused(RecoveryError):
    """The run cannot go on under this release; nothing was written."""

    def __init__(self, verdict: str, reasons: list[dict[str, Any]], replay: int, why: str = "") -> None:
        super().__init__(verdict_told(verdict, reasons, why))
        self.verdict, self.reasons, self.replay = verdict, reasons, replay


def verdict_told(verdict: str, reasons: list[dict[str, Any]], why: str = "") -> str:
    """In a sentence: the verdict with the first of its reasons."""
    own = [each for each in reasons if each["verdict"] == verdict] or reasons
    told = [f"entry {each['seq']}: {each['says']}" if each["seq"] else str(each["says"]) for each in own]
    told = [why] if why else told
    if not told:
        return f"{verdict.capitalize()}."
    more = f"; and {len(told) - 3} more" if len(told) > 3 else ""
    return f"{verdict.capitalize()}: {'; '.join(each.rstrip('.') for each in told[:3])}{more}."


class PinOutrun(RecoveryError):
    """The journal went on each time that it was judged: hold the run, and move it then."""

    def __init__(self, times: int) -> None:
        super().__init__(f"({times} times)")


class NotJudgedYet(RecoveryError):
    """No worker has judged the run yet; nothing was written. Ask again in a moment."""

    def __init__(self, replay: int) -> None:
        super().__init__(f"(judgement {replay})")
        self.replay = replay


class DrainExists(RecoveryError):
    """This scope is being drained already."""

    def __init__(self, scope: str, drain_id: int, owner: str, reason: str, at: datetime) -> None:
        super().__init__(f"{owner} ordered drain {drain_id} of {scope} at {at:%Y-%m-%d %H:%M:%S} UTC: {reason}")
        self.drain_id, self.owner, self.at = drain_id, owner, at


class DrainNotFound(RecoveryError):
    """There is no such drain."""


class DrainEnded(RecoveryError):
    """This drain is over: its deadline cannot be moved any more."""

    def __init__(self, drain_id: int, phase: str, at: datetime) -> None:
        super().__init__(f"Drain {drain_id} is {phase.replace('_', ' ')} since {at:%Y-%m-%d %H:%M:%S} UTC.")
        self.phase, self.at = phase, at


class DrainLifted(RecoveryError):
    """This drain was lifted already."""

    def __init__(self, drain_id: int, actor: str, at: datetime) -> None:
        super().__init__(f"{actor} lifted drain {drain_id} at {at:%Y-%m-%d %H:%M:%S} UTC.")
        self.actor, self.at = actor, at


class TimeoutInvalid(RecoveryError):
    """A drain has a deadline of 1 second to 7 days."""


class CannotFork(RecoveryError):
    """This run cannot be forked so."""


class NotAFrontier(CannotFork):
    """A fork begins behind an entry at which nothing was unsettled."""

    def __init__(self, at: int, why: str, before: int | None, after: int | None) -> None:
        near = " and ".join(f"entry {seq}" for seq in (before, after) if seq is not None)
        nearest = f"The nearest {'are' if ' and ' in near else 'is'} {near}" if near else "There is none"
        super().__init__(f"Entry {at} is none: {why}. {nearest}.")
        self.at, self.before, self.after = at, before, after


class TooManyReplays(RecoveryError):
    """So many journals are being decided again already; wait until some of them are done."""

    def __init__(self, whose: str, most: int) -> None:
        super().__init__(f"({whose}: at most {most} at once)")
        self.most = most


class ReplayNotFound(RecoveryError):
    """There is no such replay."""


class ForkEditRefused(RecoveryError):
    """This cannot be edited at the fork; nothing was written."""

    def __init__(self, faults: Mapping[str, str]) -> None:
        super().__init__(" ".join(f"{field}: {fault}" for field, fault in faults.items())[:2000])
        self.errors = [{"field": field, "message": fault} for field, fault in faults.items()]


class ForkRequestTaken(RecoveryError):
    """Another fork of this run was ordered under this request_id; this one was not started."""

    def __init__(self, fork: str | None, by: str, at: datetime) -> None:
        super().__init__(f"{by} ordered {fork or 'one'} at {at:%Y-%m-%d %H:%M:%S} UTC.")
        self.fork, self.by, self.at = fork, by, at


class ForkDiverges(CannotFork):
    """The agent does not decide the copied entries as they are recorded; nothing was written."""

    def __init__(self, verdict: str, seq: int | None, said: Sequence[str], replay: int) -> None:
        at = f"Entry {seq}" if seq is not None else "It"
        told = " ".join(f"{one.rstrip('.')}." for one in said[:3]) or f"could not be decided to the end ({verdict})."
        super().__init__(f"{at}: {told}")
        self.verdict, self.seq, self.replay = verdict, seq, replay


class NoRelative(RecoveryError):
    """A run is compared with another of its family of forks: this is none."""
