"""Which model is asked now, or why none is. Pure.

One attempt after the other: a model that fails is followed by the next of the order, at once; when all have failed, a
backoff comes before the next round. A model that refuses for good is passed over until somebody resumes the run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from runs.loops.compaction import next_compaction
from runs.loops.conversation import is_shown
from runs.model_turns import Later, LeaveOut, NeedsPerson
from runs.tools import Retry

if TYPE_CHECKING:
    from runs.loops.declared import ModelLoop
    from runs.slots import Attempt, Decision
    from runs.state import RunState

FOR_GOOD = frozenset({"authentication", "not_found", "quota", "rejected"})
BACKOFF = Retry(backoff=2.0)
LONGEST_WAIT = 3_600.0
NONE: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Ask:
    """`extra`: what the ATTEMPT says beside the digest of the request."""

    model: str
    extra: dict[str, Any] = field(default_factory=dict)


def next_request(
    loop: ModelLoop, state: RunState, now: float, epoch: int, unable: Mapping[str, str] = NONE
) -> Ask | Later | NeedsPerson | LeaveOut:
    """`now`: POSIX seconds; `epoch`: of the worker that would ask; `unable`: the models that it cannot, and why."""
    corrections = corrections_in_a_row(state)
    if corrections > loop.retries:
        return NeedsPerson(
            f"its answer could not be used {corrections} times in a row; the last one: {_last_fault(state)}"
        )
    if (idle := _without_moves(state)) > loop.attempts:
        return NeedsPerson(f"it answered {idle} times in a row without a call or a result")
    attempts = [attempt for attempt in state.model_attempts if attempt.seq > state.resumed_seq]
    if (compact := _compact(loop, state, attempts)) is not None:
        return compact
    refused = _refused(state)
    gone = refused | set(gone_for_good(loop, state)) | set(unable)
    left = [name for name in loop.names if name not in gone]
    if not left:
        return NeedsPerson(f"no model can be asked: {_told(loop, state, attempts, refused, unable)}")
    failed = [attempt for attempt in attempts if attempt.error is not None]
    if len(failed) >= loop.attempts:
        return NeedsPerson(f"no answer in {len(failed)} requests: {_told(loop, state, attempts, refused, unable)}")
    name = _whose_turn(loop, state, left, attempts, now)
    return name if isinstance(name, Later) else Ask(name, _extra(loop, state, epoch))


def _whose_turn(
    loop: ModelLoop, state: RunState, left: Sequence[str], attempts: Sequence[Attempt], now: float
) -> str | Later:
    """The next of the order, round and round, that has had its rest."""
    if not attempts:
        return left[0]
    last = _model(loop, attempts[-1])
    if attempts[-1].error is None:  # its worker was lost: the same is asked again
        return last if last in left else left[0]
    after = loop.names.index(last) + 1 if last in loop.names else 0
    order = [name for name in (*loop.names[after:], *loop.names[:after]) if name in left]
    ready = {name: _ready_at(loop, state, attempts, name) for name in order}
    if (free := next((name for name in order if ready[name] <= now), None)) is not None:
        return free
    return Later(min(ready.values()), "the model is asked again")


def _ready_at(loop: ModelLoop, state: RunState, attempts: Sequence[Attempt], name: str) -> float:
    """POSIX seconds from which a model may be asked again: a backoff after it was asked, and as it wants it itself."""
    failed = [attempt for attempt in attempts if attempt.error is not None and _model(loop, attempt) == name]
    if not failed or failed[-1].hurried:
        return 0.0
    asked = failed[-1].at.timestamp()
    backoff = BACKOFF.wait(len(failed), f"{state.run_id}:{name}")
    return max(asked + backoff, min(failed[-1].due or 0.0, asked + LONGEST_WAIT))


def _extra(loop: ModelLoop, state: RunState, epoch: int) -> dict[str, Any]:
    extra: dict[str, Any] = {} if state.affinity is not None else {"affinity": str(state.root)}
    last = state.model_attempts[-1] if state.model_attempts else None
    if last is not None and last.error is None and last.epoch != epoch:
        from runs.loops.prices import may_have_cost  # loads a price list, where a request was lost

        extra["lost"] = may_have_cost(last, state, dict(loop.settings or {}))
    return extra


def gone_for_good(loop: ModelLoop, state: RunState) -> dict[str, str]:
    """The models that are not asked any more until somebody resumes the run, and what each of them said. An answer
    hands them on to the next turn, as `skipped`."""
    before = next(iter(answers_since(state, state.resumed_seq)), None)
    gone = dict((before.said or {}).get("skipped", {})) if before is not None else {}
    now = [attempt for attempt in state.model_attempts if attempt.seq > state.resumed_seq and attempt.code in FOR_GOOD]
    return gone | {_model(loop, attempt): attempt.error or "" for attempt in now}


# -- corrections and refusals -----------------------------------------------------------------------------------------


def answers_since(state: RunState, seq: int) -> list[Decision]:
    """What models have said after this entry, the newest first."""
    said = (made for made in reversed(state.decisions) if made.said is not None)
    return list(takewhile(lambda made: made.seq > seq, said))


def corrections_in_a_row(state: RunState) -> int:
    """How many of the last answers had something in them that had to be said again."""
    return len(list(takewhile(_is_correction, answers_since(state, state.resumed_seq))))


def _is_correction(made: Decision) -> bool:
    said = made.said or {}
    return said.get("feedback") is not None or any(reply["outcome"] == "retried" for reply in said.get("replies", ()))


def _without_moves(state: RunState) -> int:
    """How many of the last answers led to nothing but another request."""
    return len(list(takewhile(lambda made: not (made.said or {})["moves"], answers_since(state, state.resumed_seq))))


def _last_fault(state: RunState) -> str:
    said = answers_since(state, state.resumed_seq)[0].said or {}
    wrong = [reply for reply in said.get("replies", ()) if reply["outcome"] == "retried"]
    return f"{wrong[0]['tool']}: {wrong[0]['content']}" if wrong else str(said.get("feedback", ""))


def _refused(state: RunState) -> set[str]:
    """The models whose last answers were refusals, as they were asked for."""
    refusals = takewhile(lambda made: not is_shown(made.said or {}), answers_since(state, state.resumed_seq))
    return {str((made.said or {}).get("asked_model")) for made in refusals}


def _told(
    loop: ModelLoop, state: RunState, attempts: Sequence[Attempt], refused: set[str], unable: Mapping[str, str]
) -> str:
    """Each model's last word."""
    last = {_model(loop, attempt): attempt.error for attempt in attempts if attempt.error is not None}
    gone = gone_for_good(loop, state)
    said = {name: "it refused to answer (content filter)" for name in loop.names if name in refused}
    said = {
        name: unable.get(name) or said.get(name) or last.get(name) or gone.get(name) or "not asked"
        for name in loop.names
    }
    return "; ".join(f"{name}: {why}" for name, why in said.items())


def _model(loop: ModelLoop, attempt: Attempt) -> str:
    return str(attempt.told.get("model", loop.names[0]))


# -- compaction -------------------------------------------------------------------------------------------------------


def _compact(loop: ModelLoop, state: RunState, attempts: Sequence[Attempt]) -> LeaveOut | NeedsPerson | None:
    answers = [made for made in state.decisions if made.said is not None and is_shown(made.said)]
    last = attempts[-1] if attempts else None
    too_long = last is not None and last.code == "context_too_long"
    if not too_long and not _is_over(loop, state, answers):
        return None
    body = next_compaction(state, answers, too_long)
    if body is not None:
        return LeaveOut(body)
    if not too_long:  # it may be asked as it is
        return None
    assert last is not None
    model = _model(loop, last)
    return NeedsPerson(f"the conversation is too long for {model}, and nothing more can be left out: {last.error}")


def _is_over(loop: ModelLoop, state: RunState, answers: Sequence[Decision]) -> bool:
    """Whether the last answer was made from too much. What was left out since then may be enough."""
    if loop.compact_at is None or not answers or answers[-1].said is None:
        return False
    last = answers[-1]
    if state.compacted is not None and state.compacted["answered"] == last.seq:
        return False
    return bool((last.said or {}).get("usage", {}).get("input_tokens", 0) > loop.compact_at)
