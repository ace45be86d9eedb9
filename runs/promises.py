"""What a tool's effect class promises, tried out on the real service: the suite behind `manage.py tools check`."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Literal
from uuid import uuid4

from journal.encoding import canonical
from runs.engine.calls import finish
from runs.outcomes import Absent, Found, PermanentError, describe
from runs.tools import Cancelled, Tool, ToolContext

State = Literal["kept", "broken", "skipped"]
PROBE_PATIENCE = 10.0  # seconds that an effect may take to be found: max_in_flight, but no longer than this


@dataclass(frozen=True, slots=True)
class Promise:
    """One promise of one tool, and what was seen."""

    tool: str
    promise: str
    state: State
    said: str = ""


class Broke(Exception):
    """What was seen instead."""


def examine(tool: Tool) -> list[Promise]:
    """Calls the tool with its `sample`, under keys of its own. It really acts."""
    if tool.effect not in ("keyed", "probed"):
        why = "it only reads" if tool.effect == "read" else "it is unkeyed: after a crash a person says what happened"
        return [Promise(tool.name, "nothing", "skipped", why)]
    if tool.sample is None:
        return [Promise(tool.name, "everything", "skipped", "give it @tool(sample={…}), arguments that may really act")]
    if wrong := tool.faults(dict(tool.sample)):
        return [Promise(tool.name, "its sample fits", "broken", "; ".join(wrong))]
    return list(Suite(tool, dict(tool.sample)).run())


class Suite:
    """One tool under one key, step by step; a step that cannot be made skips what follows from it."""

    def __init__(self, tool: Tool, args: dict[str, Any]) -> None:
        self.tool, self.args = tool, args
        self.run_id = uuid4()
        self.key = f"check-{self.run_id}:1"
        self.result: Any = None

    def run(self) -> Iterator[Promise]:
        if self.tool.probe is not None:
            yield self.look("the probe says absent before the call", self.absent_before)
        else:
            yield self.skip("the probe says absent before the call", "it has no probe")
        called = self.look("it answers within its timeout", self.first_call)
        yield called
        if called.state == "broken":
            return
        if self.tool.probe is not None:
            yield self.look("the probe finds it after the call", self.found_after)
        if self.tool.effect == "keyed":
            yield self.look("the same key again gives the same answer", self.same_again)
            other = other_args(self.args)
            if other is None:
                yield self.skip("other arguments under the same key are refused", "no argument could be varied")
            else:
                yield self.look("other arguments under the same key are refused", lambda: self.refused(other))

    def look(self, promise: str, step: Callable[[], str]) -> Promise:
        try:
            return Promise(self.tool.name, promise, "kept", step())
        except Broke as broke:
            return Promise(self.tool.name, promise, "broken", str(broke))
        except Exception as error:
            return Promise(self.tool.name, promise, "broken", f"it raised {describe(error)}")

    def skip(self, promise: str, why: str) -> Promise:
        return Promise(self.tool.name, promise, "skipped", why)

    # -- the steps --------------------------------------------------------------------------------------------------

    def absent_before(self) -> str:
        found = self.probe()
        if not isinstance(found, Absent):
            raise Broke(f"it answered {found}: a fresh key cannot have acted")
        return ""

    def first_call(self) -> str:
        began = time.monotonic()
        self.result = self.within(lambda: self.tool.perform(self.context(1), deepcopy(self.args)))
        if (fault := self.tool.result_fault(self.result)) is not None:
            raise Broke(fault)
        return f"{time.monotonic() - began:.2f} s of {self.tool.timeout:g} s"

    def found_after(self) -> str:
        deadline = time.monotonic() + min(self.tool.max_in_flight, PROBE_PATIENCE)
        while not isinstance(found := self.probe(), Found):
            if time.monotonic() > deadline:
                raise Broke(f"it answered {found}")
            time.sleep(0.1)
        if canonical(found.result) != canonical(self.result):
            raise Broke(f"it found {found.result!r}, the call had answered {self.result!r}")
        return ""

    def same_again(self) -> str:
        again = self.within(lambda: self.tool.perform(self.context(2), deepcopy(self.args)))
        if canonical(again) != canonical(self.result):
            raise Broke(f"it answered {again!r}, at first {self.result!r}: it may have acted twice")
        return ""

    def refused(self, other: Mapping[str, Any]) -> str:
        try:
            answer = self.within(lambda: self.tool.perform(self.context(3), other))
        except PermanentError as refusal:
            return describe(refusal)
        raise Broke(f"it answered {answer!r} to {dict(other)!r}: a mistake with keys would go unnoticed")

    def probe(self) -> Any:
        return self.within(lambda: self.tool.ask(self.context(1), deepcopy(self.args)))

    def context(self, attempt: int) -> ToolContext:
        return ToolContext(self.key, self.run_id, 1, attempt, time.time() + self.tool.timeout, Cancelled())

    def within(self, call: Callable[[], Any]) -> Any:
        """Its answer, or Broke when none comes within the tool's timeout."""
        answers: list[Any] = []
        errors: list[BaseException] = []

        def work() -> None:
            try:
                answers.append(finish(call()))
            except BaseException as error:
                errors.append(error)

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        thread.join(self.tool.timeout)
        if errors:
            raise errors[0]
        if not answers:
            raise Broke(f"no answer within {self.tool.timeout:g} s")
        return answers[0]


def other_args(args: Mapping[str, Any]) -> dict[str, Any] | None:
    """The same with one argument changed; None if none can be."""
    for name, value in args.items():
        if isinstance(value, bool):
            return {**args, name: not value}
        if isinstance(value, (int, float)):
            return {**args, name: value + 1}
    for name, value in args.items():
        if isinstance(value, str):
            return {**args, name: f"{value} (other)"}
    return None
