"""The crash matrix of one agent: its worker dies at every point that a run passes, and each promise is checked anew."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from journal.encoding import canonical
from runs.agents import Agent
from runs.testing.golden import redecide
from runs.testing.trial import Trial

MOST_QUESTIONS = 100


@dataclass(frozen=True, slots=True)
class Broken:
    """A promise that did not hold when the worker died at `point`, the `number`-th of the run (from 0)."""

    number: int
    point: str
    promise: str

    def __str__(self) -> str:
        return f"point {self.number}, {self.point}: {self.promise}"


@dataclass(frozen=True, slots=True)
class Report:
    """Which points the run passed, in order, and what broke at which."""

    points: tuple[str, ...]
    broken: tuple[Broken, ...]


class PromisesBroken(AssertionError):
    """The run of an agent does not survive a crash at some point as it should."""

    def __init__(self, report: Report) -> None:
        said = "\n".join(str(each) for each in report.broken[:20])
        more = f"\n… and {len(report.broken) - 20} more" if len(report.broken) > 20 else ""
        super().__init__(f"{len(report.broken)} promises broken in {len(report.points)} crashes:\n{said}{more}")
        self.report = report


def points(agent: Agent, input: Any = None, **given: Any) -> list[str]:
    """The names of the points that this run passes, each once, in order: what `crash_at` takes."""
    trial = Trial(agent, input, **given)
    _to_the_end(trial)
    return list(dict.fromkeys(trial.passed))


def crash_everywhere(
    agent: Agent,
    input: Any = None,
    *,
    same_result: bool = True,
    prepare: Callable[[], Any] = lambda: None,
    **given: Any,
) -> Report:
    """Run the agent once whole, then once for each point it passed, with its worker killed there and a second going on.

    Looked at each time: it ends as the whole run did, with the same result, its model told the same (unless
    `same_result` is False: it depends on the time); no key acted twice, no effect is missing or without its intent; no
    intent is settled twice; the journal is decided again alike. A call in doubt that nobody can ask about is settled as
    a person would, by the fakes' ledger.
    `prepare` is called before each run: for functions among the fakes that keep something. Raises PromisesBroken.
    """
    prepare()
    whole = Trial(agent, input, **given)
    _to_the_end(whole)
    passed = tuple(whole.passed)
    broken: list[Broken] = []
    for number, point in enumerate(passed):
        prepare()
        trial = Trial(agent, input, **given)
        if trial.crash_at_number(number):
            _to_the_end(trial)
            broken += [Broken(number, point, promise) for promise in _broken(whole, trial, same_result)]
        else:
            broken.append(Broken(number, point, "the run is not the same each time: it never came to this point"))
    report = Report(passed, tuple(broken))
    if broken:
        raise PromisesBroken(report)
    return report


def _to_the_end(trial: Trial) -> None:
    """A person looks each call in doubt up in the ledger and says what is so."""
    trial.finish()
    for _ in range(MOST_QUESTIONS):
        doubtful = [slot for slot in trial.calls if slot.in_doubt]
        if trial.status != "needs_reconciliation" or not doubtful:
            return
        slot = doubtful[0]
        effect = trial.world.first(slot.key)
        trial.reconcile(slot.step, happened=effect is not None, result=effect.result if effect else None)
        trial.finish()


def _broken(whole: Trial, trial: Trial, same_result: bool) -> list[str]:
    found = []
    if trial.status != whole.status:
        found.append(f"the run is {trial.status} ({trial.reason}), without the crash it is {whole.status}")
    elif same_result and canonical(trial.state.done) != canonical(whole.state.done):
        found.append(f"the run ended with {trial.state.done}, without the crash with {whole.state.done}")
    keys = {effect.key for effect in trial.world.effects}
    for key in sorted(keys):
        if (acted := trial.world.acted(key)) > max(1, whole.world.acted(key)):
            tool = next(effect.tool for effect in trial.world.effects if effect.key == key)
            found.append(f"{tool} acted {acted} times under the key {key}")
    missing = {effect.key for effect in whole.world.effects} - keys
    if trial.status == whole.status and missing:
        found.append(f"no effect under {', '.join(sorted(missing))}")
    intents = {slot.key for run in trial.memory.runs.values() for slot in run.state.slots.values()}
    found += [f"an effect under {key} has no intent in the journal" for key in sorted(keys - intents)]
    settled = [entry.settles for entry in trial.journal if entry.settles is not None]
    found += [f"step {step} is settled twice" for step in sorted({s for s in settled if settled.count(s) > 1})]
    if same_result and trial.status == whole.status and told(trial) != told(whole):
        found.append("its model was told otherwise than without the crash")
    if (other := redecide(trial.agent, trial.journal)) is not None:
        found.append(f"its journal is decided otherwise: {other}")
    return found


def told(trial: Trial) -> list[tuple[str, Any]]:
    """What a model was told, and what it said; not when, nor what a real provider says of each request."""
    if trial.state.affinity is None:
        return []
    return [(turn.by, turn.content["parts"] if turn.by == "model" else turn.content) for turn in trial.conversation]
