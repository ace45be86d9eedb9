"""For writers of agents: run an agent in memory with fake tools, crash it anywhere, move its clock, read its journal.

    run = testing.run(refund_desk, {"order_id": "o-1"}, tools={"lookup_order": {...}, "refund": {"id": "r-1"}})
    assert run.result == {"refunded": True}
    run.assert_once("refund")

The engine, the fold and the rules are the real ones; the database, the broker and the clock are not.
"""

from __future__ import annotations

from typing import Any

from runs.agents import Agent
from runs.testing.crashing import Broken, PromisesBroken, Report, crash_everywhere, points
from runs.testing.fakes import REAL, NotFaked, each, lost
from runs.testing.golden import GoldenDiffers, golden, replay
from runs.testing.models import answer, calls, fails, says
from runs.testing.trial import Trial

__all__ = [
    "REAL",
    "Broken",
    "GoldenDiffers",
    "NotFaked",
    "PromisesBroken",
    "Report",
    "Trial",
    "answer",
    "calls",
    "crash_everywhere",
    "each",
    "fails",
    "golden",
    "lost",
    "points",
    "replay",
    "run",
    "says",
    "start",
]


def start(agent: Agent, input: Any = None, **given: Any) -> Trial:
    """A run that has not begun: `crash_at(point)`, or `rest()`. Takes what `Trial` takes."""
    return Trial(agent, input, **given)


def run(agent: Agent, input: Any = None, *, crash_at: str | None = None, n: int = 1, **given: Any) -> Trial:
    """Run an agent until it rests. `crash_at`: its first worker dies there (the n-th time), and a second one goes on.

    `tools`: by name or tool, what each answers: a value, a function of the arguments, an exception, `each(…)`,
    `lost(…)`, or `REAL`. A tool that is not named refuses. `approve`: True, False, or a function of the call.
    `signals`, `answers`: payload by name, value by question. `agents`: agents that it may spawn. `model`: what the
    model of a model loop answers, in order: `[calls("refund", order_id="o-1"), "Done."]`, or a function of the run.
    """
    trial = Trial(agent, input, **given)
    if crash_at is not None:
        trial.crash_at(crash_at, n)
    return trial.rest()
