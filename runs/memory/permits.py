"""Limits and rates in memory: what sql/permits_v1.sql judges elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from datetime import UTC, datetime
from uuid import UUID

from runs.engine.rules import WaitUntil
from runs.limits import at_once_text, ordinal, rate_text
from runs.slots import Slot
from runs.tools import Tool

Step = tuple[UUID, int]
Counted = tuple[str, str]  # a tool's name and the value that its calls are counted by


@dataclass(slots=True)
class MemoryPermits:
    """`now`: POSIX seconds. `wake`: called with each run that is granted what it waited for."""

    now: Callable[[], float]
    wake: Callable[[UUID], None]
    lines: dict[Counted, dict[Step, int]] = field(
        default_factory=dict
    )  # who asked first stands first; with the attempt
    most: dict[Counted, int] = field(default_factory=dict)
    sends: dict[Counted, list[float]] = field(default_factory=dict)
    taken: set[Step] = field(default_factory=set)  # whose holder knows that it may send

    def ask(self, run_id: UUID, slot: Slot, attempt: int, tool: Tool) -> WaitUntil | None:
        if tool.limit is not None:
            value = tool.limit_value(slot.args)
            line = self.lines.setdefault((tool.name, value), {})
            self.most[tool.name, value] = tool.limit.at_once
            line[run_id, slot.step] = attempt
            place = list(line).index((run_id, slot.step)) - tool.limit.at_once + 1
            if place > 0:
                return WaitUntil(None, f"{at_once_text(tool.name, tool.limit, value)}; {ordinal(place)} in line")
        if tool.rate is not None:
            value = tool.rate_value(slot.args)
            calls, per = tool.rate.counted
            sends = [at for at in self.sends.get((tool.name, value), []) if at > self.now() - per]
            if len(sends) >= calls:
                at = sends[-calls] + per
                when = datetime.fromtimestamp(at, UTC).strftime("%H:%M:%S UTC")
                return WaitUntil(at, f"{rate_text(tool.name, tool.rate, value)}, the next one may go at {when};")
            self.sends[tool.name, value] = [*sends, self.now()]
        self.taken.add((run_id, slot.step))
        return None

    def held(self, run_id: UUID) -> dict[int, int]:
        return {step: n for line in self.lines.values() for (run, step), n in line.items() if run == run_id}

    def free(self, run_id: UUID, steps: Collection[int] | None) -> None:
        for counted, line in self.lines.items():
            most = self.most[counted]
            before = list(line)[:most]
            for run, step in list(line):
                if run == run_id and (steps is None or step in steps):
                    del line[run, step]
                    self.taken.discard((run, step))
            for granted in list(line)[:most]:
                if granted not in before:
                    self.wake(granted[0])

    def repair(self, run_id: UUID, ended: bool, settled: Collection[int]) -> None:
        """The sweep's part for a run that nobody drives. What died with its holder is given up: all of an ended run,
        else what was sent and is settled. What was granted and never heard of is told again."""
        held = self.held(run_id)
        left = {step for step in held if ended or ((run_id, step) in self.taken and step in settled)}
        if left:
            self.free(run_id, left)
        for counted, line in self.lines.items():
            granted = list(line)[: self.most[counted]]
            if any(run == run_id and (run, step) not in self.taken for run, step in granted):
                self.wake(run_id)

    def parked_in_line(self, run_id: UUID) -> None:
        """Nothing can have happened meanwhile."""
