"""The same walk where most happens between relatives: short programs of calls, forked again and again."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from tests.machine.agents import DRIVERS, talker
from tests.machine.machine import MOST_FORKS, MOST_RUNS, Machine, any_of, either, points, some_slices
from tests.machine.world import TOOLS, TROUBLES, WORLD
from tests.rig.crew import start

ACTING = sorted(TOOLS.keys() - {"look"})
openings = st.tuples(
    st.lists(st.sampled_from(ACTING).map(lambda name: ["call", name]), min_size=1, max_size=3),
    st.sampled_from([*DRIVERS, talker.name]),
)


class Families(Machine):
    @initialize(
        opening=openings, deaths=st.lists(points, max_size=4),
        kinds=st.lists(st.sampled_from(TROUBLES), max_size=4),
    )  # fmt: skip
    def open_with(self, opening: tuple[list[Any], str], deaths: list[int], kinds: list[str]) -> None:
        self.deaths = deaths
        WORLD.troubles.extend(kinds)
        self.roots.append(start(opening[1], opening[0]))
        self.fork(0, 0)

    @rule()
    def begin(self) -> None:
        """One family is enough."""

    @precondition(lambda self: len(self.roots) < MOST_RUNS + MOST_FORKS)
    @rule(which=any_of, at=any_of, who=either)
    def forks_and_goes(self, which: int, at: int, who: int) -> None:
        self.fork(which, at)
        self._advance(which, who, 2)

    @rule(which=any_of, who=either, slices=some_slices, at=points, act=any_of)
    def forks_meanwhile(self, which: int, who: int, slices: int, at: int, act: int) -> None:
        """Somebody forks the run, or a relative, while the worker is at this point."""

        def fork_now(_name: str) -> None:
            if len(self.roots) < MOST_RUNS + MOST_FORKS:
                self.fork(act, at)

        self._advance(which, who, slices, at, fork_now)
