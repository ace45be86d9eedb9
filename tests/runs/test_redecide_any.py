"""Whatever a program did: under the same code nothing differs, at any cut; a changed move differs where it is."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from journal.entries import Entry
from runs import testing
from runs.agents import Agent
from runs.edits import edited
from runs.redeciding import redecide
from runs.sdk import PermanentError, TransientError
from runs.state import fold
from tests.machine.agents import script, script_decide, script_model
from tests.machine.programs import programs
from tests.machine.world import TOOLS
from tests.rig.script import QUESTION

AGENTS = (script, script_decide, script_model)
UNHURRIED = [HealthCheck.too_slow, HealthCheck.data_too_large]
HOW = settings(deadline=None, max_examples=100, suppress_health_check=UNHURRIED)


def once_busy() -> Any:
    return testing.each(TransientError("not now", retry_after=0), *["acted"] * 50)


BEHAVIOURS = st.sampled_from(
    [lambda: "acted", lambda: "acted", lambda: "acted", once_busy, lambda: PermanentError("never")]
)


@st.composite
def trials(draw: st.DrawFn) -> testing.Trial:
    """A run of a drawn program, as far as it went: ended, parked, or cancelled on the way."""
    agent = draw(st.sampled_from(AGENTS))
    fakes = {name: draw(BEHAVIOURS)() for name in TOOLS}
    trial = testing.start(
        agent,
        draw(programs(1)),
        tools=fakes,
        approve=draw(st.sampled_from([True, True, False, None])),
        signals=draw(st.sampled_from([{}, {"go": testing.each(*range(40)), "on": testing.each(*range(40))}])),
        answers=draw(st.sampled_from([{}, {QUESTION: 3}])),
        agents=[other for other in AGENTS if other is not agent],
    )
    trial.finish()
    if trial.status not in ("done", "failed") and draw(st.booleans()):
        trial.cancel()
    event(trial.status)
    return trial


@HOW
@given(trials())
def test_the_same_code_decides_the_same_at_any_cut(trial: testing.Trial) -> None:
    entries = trial.journal
    for at in (None, *range(1, len(entries) + 1)):
        found = redecide(trial.agent, entries, at=at)
        assert found.divergences == [] and found.stopped_at is None, (at, trial.story)
        assert found.compared == found.of, (at, trial.story)


@HOW
@given(trials(), st.data())
def test_a_changed_move_differs_exactly_where_it_is(trial: testing.Trial, data: st.DataObject) -> None:
    entries = trial.journal
    state = fold(entries[0].run_id, entries)
    made = [decision for decision in state.decisions if decision.steps]
    if not made:
        return
    place = data.draw(st.integers(0, len(made) - 1), "the statement that is changed")
    program = list(state.input)
    program[place] = ["call", "charge"] if program[place] != ["call", "charge"] else ["call", "refund"]
    changed = edited(entries, [{"seq": 1, "value": program}])
    found = redecide(trial.agent, changed)
    if trial.agent.name == script_model.name:
        assert found.divergences == [], "what the model said is recorded, whatever was asked"
        return
    first = found.first
    assert first is not None and first.seq == state.slots[made[place].steps[0]].seq, (place, trial.story)
    assert only_behind(trial.agent, changed, first.seq)


def only_behind(agent: Agent, entries: list[Entry], seq: int) -> bool:
    """Whether nothing differs before this entry, also where the journal ends there."""
    return all(redecide(agent, entries, at=at).divergences == [] for at in range(1, seq))
