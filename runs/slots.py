"""What a journal is folded into, piece by piece: steps with their attempts, approvals, decisions, controls, signals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from runs.policies import ANY_ONE, Policy
from runs.short_ids import short_id

ASKS_FIRST = "needs_approval"  # code of an attempt that found out, before it acted, that somebody has to approve it


@dataclass(slots=True)
class Attempt:
    """One send of a call. `step` NULL belongs to a model request: `told` is what its entry says of it, `code` the sort
    of its failure."""

    number: int
    seq: int
    epoch: int
    at: datetime
    source: str
    error: str | None = None
    due: float | None = None
    unknown_at: datetime | None = None
    hurried: bool = False  # somebody said that the next one need not wait
    doubt: bool = False  # when it was sent, an earlier one may have acted: that this one did not settles nothing
    refused: bool = False  # for good
    told: dict[str, Any] = field(default_factory=dict)
    code: str | None = None


@dataclass(slots=True)
class Decider:
    """Who said so, when and in which entry."""

    actor: str
    at: datetime
    seq: int
    note: str = ""


@dataclass(slots=True)
class Question:
    """A question back of an approver. The decision waits for its answer."""

    by: str
    text: str
    seq: int
    at: datetime


@dataclass(slots=True)
class Edit:
    """A person's arguments in place of the agent's."""

    by: str
    args: dict[str, Any]
    at: datetime
    seq: int
    note: str = ""

    @property
    def record(self) -> dict[str, Any]:
        """As the call's OBS tells of it."""
        return {"by": self.by, "args": self.args}


STANDS = {
    "succeeded": "which succeeded", "in_doubt": "of which nobody knows yet whether it happened",
    "awaiting_approval": "which waits for approval", "pending": "which is about to be sent",
    "started": "which was started", "failed": "which surely did not happen", "denied": "which was denied",
    "cancelled": "which was withdrawn",
}  # fmt: skip
WEIGHTS = {"awaiting_approval": 0, "pending": 0, "in_doubt": 1}  # to be expected, perhaps done; all else was done


@dataclass(frozen=True, slots=True)
class Repeat:
    """The same effect in a relative, done or to be expected; how it stood when it was looked at."""

    run: UUID
    seq: int
    step: int
    outcome: str

    @property
    def record(self) -> dict[str, Any]:
        return {"run": str(self.run), "seq": self.seq, "step": self.step, "outcome": self.outcome}

    @property
    def weight(self) -> int:
        """How much has happened of it: the more, the more somebody has to be told who lets it happen again."""
        return WEIGHTS.get(self.outcome, 2)

    @property
    def stands(self) -> str:
        return STANDS.get(self.outcome, "which cannot be compared any more")

    @property
    def in_words(self) -> str:
        return f"step {self.step} of {short_id(self.run)} (entry {self.seq}), {self.stands}"

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> Repeat:
        return cls(UUID(record["run"]), record["seq"], record["step"], record["outcome"])


def repeats_in_words(repeats: Sequence[Repeat]) -> str:
    """The same as step 4 of r-7k3m9q2a (entry 12), which succeeded."""
    said = [repeat.in_words for repeat in repeats[:3]]
    return "the same as " + ", ".join(said) + (f" and {len(repeats) - 3} more" if len(repeats) > 3 else "")


@dataclass(slots=True)
class Approval:
    """The last request for approval, and what came of it.

    `verdict`: requested until it is decided, then granted, denied, edited or expired; `seq`, `at`, `actor` and `note`
    are of the entry that made it so. `digest`: what it is bound to. `fields`: what the tool's `canonical=` names.
    """

    verdict: str
    seq: int
    at: datetime
    actor: str
    digest: str
    note: str = ""
    requested_seq: int = 0
    requested_at: datetime | None = None
    policy: Policy = ANY_ONE
    release: str = ""
    expires: float | None = None  # POSIX seconds
    why: str = ""  # it is asked for anew, or by the tool itself
    first: bool = False  # there was no request before this one
    repeats: Sequence[Repeat] = ()  # what relatives have done, or are about to, that is the same
    fields: dict[str, Any] | None = None
    summary: str | None = None  # of a person's arguments
    grants: list[Decider] = field(default_factory=list)
    question: Question | None = None
    renew: Decider | None = None  # who asked for it anew, once it had expired

    @property
    def open(self) -> bool:
        return self.verdict == "requested"

    @property
    def granted_by(self) -> list[str]:
        return [grant.actor for grant in self.grants]

    def decide(self, verdict: str, entry_seq: int, at: datetime, actor: str, note: str) -> None:
        self.verdict, self.seq, self.at, self.actor, self.note = verdict, entry_seq, at, actor, note
        self.question = None


@dataclass(slots=True)
class Control:
    """A hold, cancel, divergence or quarantine in force."""

    verb: str
    reason: str
    actor: str
    at: datetime
    seq: int
    body: dict[str, Any]


@dataclass(slots=True)
class Signal:
    """A signal that came; `step` is the wait that took it, once one has."""

    name: str
    payload: Any
    id: str | None
    seq: int
    at: datetime
    actor: str
    step: int | None = None


@dataclass(slots=True)
class Decision:
    """A PLAN: the seq it was made from, the steps it made, whether all or the first success of them is waited for; a
    model's also keeps its moves. `said`: the body of an answer in a conversation, which the next one builds on."""

    seq: int
    seen: int
    by_model: bool
    moves: list[dict[str, Any]] | None
    join: str = "all"
    steps: list[int] = field(default_factory=list)
    said: dict[str, Any] | None = None


@dataclass(slots=True)
class Slot:
    """A step. `kind`: call, sleep, signal (a wait for one), ask or child."""

    step: int
    kind: str
    seq: int
    at: datetime
    body: dict[str, Any]
    decided: Decision | None = None
    approval: Approval | None = None
    attempts: list[Attempt] = field(default_factory=list)
    outcome: str | None = None
    result: Any = None
    error: str | None = None
    obs_seq: int | None = None
    obs_at: datetime | None = None
    settled_by: str | None = None
    cleared: bool = False
    cleared_by: str | None = None
    cleared_at: datetime | None = None
    probe_asked: bool = False
    undecided: int = 0
    undecided_at: datetime | None = None
    absent: bool = False  # it was found that the last attempt did not act, and approval for the next one was asked for
    edited: Edit | None = None
    editors: list[str] = field(default_factory=list)
    doubted: bool = False  # whether it was ever unknown if it happened
    let: Sequence[Repeat] = ()  # of a child: what somebody resumed the run knowing of

    @property
    def tool(self) -> str:
        """The tool; of another kind of step, what it is called in a sentence."""
        match self.kind:
            case "call":
                return str(self.body["tool"])
            case "signal":
                return f"wait for {self.signal}"
            case "child":
                return str(self.body["agent"])
            case _:
                return self.kind

    @property
    def sends(self) -> list[Attempt]:
        """Attempts that may have acted: one that asked for approval first did nothing."""
        return [attempt for attempt in self.attempts if attempt.code != ASKS_FIRST]

    @property
    def signal(self) -> str:
        return str(self.body.get("signal", ""))

    @property
    def child(self) -> UUID | None:
        """The child's run id; None if it could not be started."""
        return UUID(self.body["child"]) if self.body.get("child") else None

    @property
    def unborn(self) -> bool:
        """A child that is started once the relatives were looked at."""
        return self.kind == "child" and self.gate == "family" and self.child is None

    @property
    def due(self) -> float | None:
        """When a sleep ends, or a wait or a question expires: POSIX seconds."""
        return self.body.get("due")

    @property
    def args(self) -> dict[str, Any]:
        """What is sent: the agent's arguments, or a person's in their place."""
        return self.edited.args if self.edited is not None else self.asked_args

    @property
    def asked_args(self) -> dict[str, Any]:
        """What the agent asked for, whatever a person made of it."""
        return self.body["args"] if self.kind == "call" else {}

    @property
    def summary(self) -> str | None:
        """What the call would do, in one sentence, if its tool says so."""
        if self.edited is not None:
            return self.approval.summary if self.approval is not None else None
        return self.body.get("summary")

    @property
    def id(self) -> str | None:
        return self.body.get("id")

    @property
    def key(self) -> str:
        return str(self.body.get("key", ""))

    @property
    def effect(self) -> str:
        return str(self.body.get("effect", ""))

    @property
    def digest(self) -> str:
        return str(self.body.get("digest", ""))

    @property
    def gate(self) -> str | None:
        return self.body.get("gate")

    @property
    def settled(self) -> bool:
        return self.outcome is not None

    @property
    def in_doubt(self) -> bool:
        """Its last attempt has neither an error nor a settling observation, and nobody said that it did not happen.

        Or it has an error, but an attempt before it may have acted.
        """
        return self.kind == "call" and not self.settled and bool(self.attempts) and not self.surely_not_done

    @property
    def sent(self) -> Attempt | None:
        """The first attempt that did more than to ask for approval: from then on its arguments stay what they are."""
        return next((attempt for attempt in self.attempts if attempt.code != ASKS_FIRST), None)

    @property
    def surely_not_done(self) -> bool:
        if not self.attempts or self.cleared or self.absent:
            return True
        return self.attempts[-1].error is not None and not self.attempts[-1].doubt

    @property
    def state(self) -> str:
        if self.settled:
            return "settled"
        if self.approval and self.approval.verdict in ("requested", "expired"):  # also for another send
            return "awaiting_approval"
        return "in_doubt" if self.in_doubt else "pending"

    @property
    def has_expired(self) -> bool:
        """Nobody approved it in time, and nobody asked for it anew since."""
        approval = self.approval
        return not self.settled and approval is not None and approval.verdict == "expired" and approval.renew is None

    @property
    def recorded(self) -> dict[str, Any]:
        """The move that made this step, as `moves.as_record` tells it."""
        body = self.body
        match self.kind:
            case "call":
                return {"call": self.tool, "args": self.asked_args} | _kept(body, "id")
            case "signal":
                return {"wait_for": self.signal} | _kept(body, "timeout")
            case "ask":
                return {"ask": body["question"], "schema": body["schema"]} | _kept(body, "options", "timeout")
            case "child":
                asked = _kept(body.get("asked", {}), "release", "labels", "deadline")
                return {"spawn": self.tool, "input": body["input"]} | asked
            case _:
                return {"sleep": body["seconds"]} if "seconds" in body else {"until": body["until"]}


def _kept(body: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: body[name] for name in names if body.get(name) is not None}
