"""The small grammar that the machine's programs are drawn from."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tests.machine.agents import DRIVERS, talker
from tests.machine.world import TOOLS

Programs = st.SearchStrategy[list[Any]]

calls = st.sampled_from(sorted(TOOLS)).map(lambda name: ["call", name])
sleeps = st.sampled_from([0, 0.03]).map(lambda seconds: ["sleep", seconds])
awaited = st.tuples(st.sampled_from(["go", "on"]), st.sampled_from([None, None, 0, 0.05]))
waits = st.one_of(awaited.map(lambda given: ["wait", *given]), st.just(["wait", "never", 0.05]))
several = st.lists(calls, min_size=2, max_size=4).map(lambda each: ["all", each])
talks = st.lists(st.one_of(calls, several), min_size=1, max_size=4)
asks = st.sampled_from([None, None, 0, 0.05]).map(lambda timeout: ["ask", timeout])


def statements(depth: int) -> Programs:
    alone = [calls, calls, calls, calls, sleeps, waits, asks]
    if depth == 0:
        return st.one_of(*alone)
    spawns = started(depth - 1).map(lambda given: ["spawn", *given])
    together = st.lists(st.one_of(*alone, spawns), min_size=2, max_size=4).map(lambda each: ["all", each])
    first = st.lists(st.one_of(sleeps, waits, asks, spawns), min_size=1, max_size=3).map(lambda each: ["first", each])
    return st.one_of(*alone, spawns, together, first)


def started(depth: int) -> st.SearchStrategy[tuple[list[Any], str]]:
    """A program, and who runs it: in a conversation there is nothing but calls."""
    whose = {name: programs(depth) for name in DRIVERS} | {talker.name: talks}
    return st.sampled_from(sorted(whose)).flatmap(lambda name: st.tuples(whose[name], st.just(name)))


def programs(depth: int) -> Programs:
    ending = st.sampled_from([[], [], [], [["fail"]]])
    return st.tuples(st.lists(statements(depth), min_size=2, max_size=5), ending).map(lambda parts: parts[0] + parts[1])
