"""One request of the library to its model, as the engine asks for a decision."""

from __future__ import annotations

import time
from collections.abc import Collection
from typing import Any

from pydantic_ai import ModelResponse, TextPart, ThinkingPart
from pydantic_ai.durable_exec import JSON_CODEC

from journal.entries import Draft
from runs.engine import drafts
from runs.engine.asking import Line
from runs.engine.calls import Ended, Returned
from runs.integrations.pydantic_ai.units import Unit
from runs.loops.answers import struck_answer, thought_in
from runs.loops.asking import Arriving, awaited, is_whole
from runs.loops.errors import ModelFailed
from runs.loops.failures import failure_of, no_answer_within
from runs.loops.prices import accounts, may_have_cost
from runs.loops.readable import without_access
from runs.loops.sendable import id_of_call, sendable_part
from runs.model_turns import Later, NeedsPerson, Next, Ready
from runs.outcomes import describe
from runs.secrets import redacted, struck_text
from runs.state import RunState
from runs.tools import Retry

BACKOFF = Retry(attempts=10, backoff=2.0)
USELESS = frozenset({"quota", "authentication", "not_found", "rejected", "context_too_long"})  # to ask again alike
STRUCK = ("response", "thought")  # of a PLAN, what a model has written


class UnitAsking:
    """`model`: as the release names it. `native`: kinds of tools that the provider may run inside the request."""

    def __init__(self, unit: Unit, model: str, timeout: float, native: Collection[str]) -> None:
        self.unit, self.model, self.timeout = unit, model, timeout
        wanted = {tool.kind for tool in unit.params.model_request_parameters.native_tools}
        self.undeclared = ", ".join(sorted(wanted - set(native)))
        self.tools = unit.params.model_request_parameters.tool_defs
        self.took = 0.0

    def next(self, state: RunState, now: float, epoch: int) -> Next:
        if self.undeclared:
            return NeedsPerson(f"the provider would run {self.undeclared} itself: native= has to declare it read")
        last = state.model_attempts[-1] if state.model_attempts else None
        if last is not None and last.error is not None and last.seq > state.resumed_seq:
            if last.code in USELESS:
                return NeedsPerson(f"{self.model} does not answer: {last.error}")
            if sum(each.seq > state.resumed_seq for each in state.model_attempts) >= BACKOFF.attempts:
                return NeedsPerson(f"{self.model} did not answer in {BACKOFF.attempts} attempts: {last.error}")
            if last.due is not None and not last.hurried and last.due > now:
                return Later(last.due, "the model is asked again")
        unit = self.unit
        told = {"model": self.model, "digest": unit.digest, "size": len(unit.request), "client": unit.client}
        if last is not None and last.error is None:  # its worker was lost, and the answer with it
            told["lost"] = may_have_cost(last, state, dict(unit.params.model_settings or {}))
        return Ready(told)

    def ask(self, line: Line) -> Any:
        arriving = Arriving()
        began = time.monotonic()
        future = self.unit.perform(hearing=arriving.add)
        try:
            payload = awaited(future, self.timeout, line.deadline, arriving, line.hear, line.cancelled)
        except BaseException:
            future.cancel()
            raise
        self.took = round(time.monotonic() - began, 3)
        return payload

    def answer(self, how: Ended, state: RunState, seen: int, now: float) -> Draft:
        if isinstance(how, Returned):
            try:
                return drafts.answered(seen, state.model_attempts[-1].seq, self._body(how.value))
            except ModelFailed as fault:
                failed = fault
        else:
            failed = failure_of(how.error)
        says = no_answer_within(self.timeout) if failed.code == "timeout" else failed.says
        wait = BACKOFF.wait(len(state.model_attempts), f"{state.run_id}:model")
        return drafts.failure(
            None, struck_text(says), now + max(wait, failed.retry_after or 0.0), code=failed.code,
            model=self.model, status=failed.status, request_id=failed.request_id,
        )  # fmt: skip

    def _body(self, payload: Any) -> dict[str, Any]:
        """Raises ModelFailed for what is no whole answer."""
        try:
            payload = as_kept(payload, self.tools)
            response = JSON_CODEC.load(ModelResponse, payload)
        except (ValueError, TypeError, KeyError) as error:
            raise ModelFailed("garbage", f"the answer cannot be read: {describe(error)}") from error
        if not is_whole(self.unit.model, response):
            raise ModelFailed("cut_stream", "the answer ended before it was whole")
        body = {
            "moves": [], "response": payload, "client": self.unit.client, "digest": self.unit.digest,
            "model": response.model_name, "latency": self.took,
        } | accounts(response)  # fmt: skip
        thought = thought_of(response)
        told = body | ({"thought": thought} if thought else {})
        return told if redacted() is None else told | {n: struck_answer(told[n], ()) for n in STRUCK if n in told}


def as_kept(payload: dict[str, Any], tools: Collection[str]) -> dict[str, Any]:
    """Of several calls with one id each gets one of its own: what comes of them is told apart by it. Names, ids and
    arguments that no provider would take again, and the library sends as they are, become such as each takes; none
    becomes the name of a tool by that."""
    parts, seen = [], set()
    for number, part in enumerate(payload["parts"]):
        if part.get("part_kind") == "tool-call":
            said, part = part, sendable_part(part)
            if part["tool_name"] != said["tool_name"] and part["tool_name"] in tools:
                part["tool_name"] = "unknown_tool"
            if part["tool_call_id"] in seen:
                part["tool_call_id"] = id_of_call(f"{said['tool_call_id']}_{number}")
            seen.add(part["tool_call_id"])
        parts.append(part)
    return payload | {"parts": parts, "provider_url": without_access(payload.get("provider_url"))}


def thought_of(response: ModelResponse) -> str:
    """What was said beside calls; text alone is the result."""
    if not response.tool_calls:
        return ""
    return thought_in(part.content for part in response.parts if isinstance(part, (ThinkingPart, TextPart)))
