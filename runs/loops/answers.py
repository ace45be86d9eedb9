"""An answer as the body of its PLAN: moves, replies, plan, what was used. Nothing that a model can say raises here.

Several things at once are decided so:
- calls beside `final_result` are made, and the run goes on: the model ends it when it has seen what came of them;
- the first valid one of several `final_result` ends the run;
- `update_plan` is answered at once, beside whatever else is called; alone, the model is asked again;
- text beside calls is a thought, not the result;
- of calls with one id the first is made; the others get an id of their own and are asked for again;
- a call without an id gets one;
- an answer in which the provider paused, as between tools that it runs itself, is gone on with.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pydantic_core
from pydantic import ValidationError

from journal.encoding import problems
from runs.loops.conversation import calls_in, is_paused
from runs.loops.declared import FINAL_RESULT, UPDATE_PLAN, WRAPPED, is_wrapped
from runs.loops.hiding import hide_untaken, spelled, strike_arguments, strike_in_text
from runs.loops.policy import corrections_in_a_row, gone_for_good
from runs.loops.prices import accounts
from runs.moves import LONGEST_NAME
from runs.secrets import redacted, sealed_by, seals_in, struck, words_of

if TYPE_CHECKING:
    from runs.agents import Agent
    from runs.loops.asking import Answer
    from runs.loops.declared import ModelLoop
    from runs.state import RunState
    from runs.tools import Tool

log = logging.getLogger("holdfast.loops")

LONGEST_THOUGHT = 2_000
MOST_ITEMS, LONGEST_ITEM = 50, 500  # of a plan
MOST_FAULTS = 10
EMPTY = "Your answer was empty. Call a tool, or give your final answer."
CUT = "Your answer was cut off: it reached the limit of output tokens. Answer more briefly, or in smaller steps."
UNREAD = "Your answer could not be read. Answer again."
ENDS_BY_CALL = f"Text does not end this run. Call {FINAL_RESULT} with the result, or another tool."
RESULTS_FIRST = f"Not ended yet: look at the results of your other calls first, then call {FINAL_RESULT} alone."
SAME_ID = "Two calls of your answer had the same id, and only the first was made. Call again if this one is needed."


class Wrong(Exception):
    """Of a call; `cause` as a reply names it."""

    def __init__(self, cause: str, says: str) -> None:
        super().__init__(says)
        self.cause, self.says = cause, says


@dataclass(slots=True)
class Reading:
    """What has been made of an answer so far."""

    agent: Agent
    loop: ModelLoop
    attempt: int
    asked: int  # the seq of the ATTEMPT
    response: dict[str, Any]
    moves: list[dict[str, Any]] = field(default_factory=list)
    replies: list[dict[str, Any]] = field(default_factory=list)
    plan: list[Any] | None = None
    ends: list[tuple[dict[str, Any], Any]] = field(default_factory=list)  # calls of final_result, and their results
    words: set[str] = field(default_factory=set)  # that are struck
    taken: set[str] = field(default_factory=set)  # ids of calls whose secrets were sealed by their tool's schema
    feedback: str | None = None

    def reply(self, call: dict[str, Any], outcome: str, content: str, **more: Any) -> None:
        told = {"id": call["tool_call_id"], "tool": call["tool_name"], "outcome": outcome, "content": content}
        self.replies.append(told | more)

    def correct(self, call: dict[str, Any], wrong: Wrong) -> None:
        self.reply(call, "retried", wrong.says, cause=wrong.cause, attempt=self.attempt)


def plan_of(agent: Agent, loop: ModelLoop, state: RunState, answer: Answer) -> dict[str, Any]:
    """The body of the PLAN, but for `seen` and `asked`."""
    asked = state.model_attempts[-1].seq if state.model_attempts else 0
    reading = Reading(agent, loop, corrections_in_a_row(state) + 1, asked, deepcopy(answer.stored))
    finish = answer.response.finish_reason
    try:
        if finish != "content_filter":
            _read(reading, finish)
    except Exception:  # whatever it said, it is answered; what it cost is kept
        log.warning("run %s: an answer could not be read", state.run_id, exc_info=True)
        reading = Reading(agent, loop, reading.attempt, asked, deepcopy(answer.stored), feedback=UNREAD)
    skipped = gone_for_good(loop, state)
    return _body(reading, answer) | ({"skipped": skipped} if skipped else {})


def _read(reading: Reading, finish: str | None) -> None:
    calls = list(_with_own_ids(reading))
    for call in calls:
        try:
            _take(reading, call)
        except Wrong as wrong:
            reading.correct(call, wrong)
    if reading.ends:
        _end(reading)
    if not calls:
        if not is_paused(reading.response):
            _read_text(reading, finish)
    elif finish == "length" and any(reply["outcome"] == "retried" for reply in reading.replies):
        reading.feedback = CUT


def _with_own_ids(reading: Reading) -> Iterator[dict[str, Any]]:
    seen: set[str] = set()
    for place, call in enumerate(calls_in(reading.response)):
        if not call.get("tool_call_id"):  # some gateways give none; the conversation needs one
            call["tool_call_id"] = f"call_{reading.asked}_{place}"
        id, number = call["tool_call_id"], 2
        if id not in seen:
            seen.add(id)
            yield call
            continue
        while f"{id}-{number}" in seen:
            number += 1
        call["tool_call_id"] = f"{id}-{number}"
        seen.add(call["tool_call_id"])
        reading.correct(call, Wrong("arguments", SAME_ID))


def _take(reading: Reading, call: dict[str, Any]) -> None:
    """Raises Wrong."""
    name = call["tool_name"]
    tool = reading.agent.toolbox.get(name)
    if name == UPDATE_PLAN:
        reading.plan = _plan_in(_arguments(call))
        reading.reply(call, "answered", "The plan is noted.")
    elif name == FINAL_RESULT and reading.loop.output_schema is not None:
        reading.ends.append((call, _result_in(reading.loop, _arguments(call))))
    elif tool is None:
        raise Wrong("unknown_tool", _unknown(reading, name))
    else:
        args, schema = _arguments(call), tool.contract["parameters"] if tool.has_secrets else None
        sealed = sealed_by(schema, args)
        if any(True for _ in seals_in(sealed)):
            reading.words.update(words_of(sealed))
            strike_arguments(call, sealed)
        if faults := _faults(tool, args):
            raise Wrong("arguments", "The arguments are not right:\n" + "\n".join(f"- {f}" for f in faults))
        reading.taken.add(call["tool_call_id"])
        reading.moves.append({"call": name, "args": sealed_by(schema, tool.normal(args)), "id": call["tool_call_id"]})


def _arguments(call: dict[str, Any]) -> dict[str, Any]:
    args = call.get("args")
    if not args:
        return {}
    try:
        found = pydantic_core.from_json(args) if isinstance(args, str) else args
    except ValueError as error:
        raise Wrong("arguments", f"The arguments are not valid JSON: {error}") from error
    if not isinstance(found, dict):
        raise Wrong("arguments", "The arguments have to be a JSON object.")
    if problems(found):
        raise Wrong("arguments", "The arguments are nested too deeply.")
    return deepcopy(found)


def _faults(tool: Tool, args: dict[str, Any]) -> list[str]:
    try:
        return tool.faults(args)[:MOST_FAULTS]
    except Exception as error:  # a validator of the tool's author
        return [f"they could not be checked: {type(error).__name__}: {error}"]


def _unknown(reading: Reading, name: str) -> str:
    last = [FINAL_RESULT] if reading.loop.output_schema is not None else []
    known = sorted([*reading.agent.toolbox, UPDATE_PLAN, *last])
    return f"There is no tool {name[:LONGEST_NAME]!r}. The tools are: {', '.join(known)}."


def _result_in(loop: ModelLoop, args: dict[str, Any]) -> Any:
    schema = loop.output_schema
    if schema is not None and is_wrapped(schema):
        if WRAPPED not in args:
            raise Wrong("output", f"The result is missing: give it as {WRAPPED}.")
        return _validated(loop, args[WRAPPED])
    return _validated(loop, args)


def _validated(loop: ModelLoop, value: Any) -> Any:
    try:
        return loop.validate_output(value)
    except ValidationError as error:
        faults = [f"- {'.'.join(map(str, e['loc'])) or 'result'}: {e['msg']}" for e in error.errors(include_url=False)]
        raise Wrong("output", "The result is not right:\n" + "\n".join(faults[:MOST_FAULTS])) from error
    except Exception as error:  # a validator of the agent's author
        raise Wrong("output", f"The result is not right: {error}") from error


def _end(reading: Reading) -> None:
    others = reading.moves or any(reply["outcome"] == "retried" for reply in reading.replies)
    if others:
        for call, _ in reading.ends:
            reading.reply(call, "answered", RESULTS_FIRST)
        return
    reading.moves.append({"finish": struck(reading.ends[0][1])})


def _read_text(reading: Reading, finish: str | None) -> None:
    text = _text(reading.response, "text").strip()
    if finish == "length":
        reading.feedback = CUT
    elif not text:
        reading.feedback = EMPTY
    elif reading.loop.output_schema is not None:
        reading.feedback = ENDS_BY_CALL
    else:
        _finish_by_text(reading, text)


def _finish_by_text(reading: Reading, text: str) -> None:
    try:
        reading.moves.append({"finish": struck(_validated(reading.loop, text))})
    except Wrong as wrong:
        reading.feedback = wrong.says


def _plan_in(args: dict[str, Any]) -> list[Any]:
    """As the plan panel reads it: the first of what comes next is what is being done."""
    found: list[Any] = []
    for word in ("done", "next", "decided"):
        items = args.get(word, [])
        if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
            raise Wrong("arguments", f"{word} is a list of texts.")
        for at, item in enumerate(items[:MOST_ITEMS]):
            found.append({"later" if word == "next" and at else word: item[:LONGEST_ITEM]})
    return found


# -- what is kept -----------------------------------------------------------------------------------------------------


def _body(reading: Reading, answer: Answer) -> dict[str, Any]:
    output = {FINAL_RESULT} if reading.loop.output_schema is not None else set()
    left = [call for call in calls_in(reading.response) if call["tool_call_id"] not in reading.taken]
    for call in left:
        if call["tool_name"] not in {UPDATE_PLAN} | output:
            reading.words |= hide_untaken(call, reading.agent.toolbox)
    for call in calls_in(reading.response):
        strike_in_text(call, reading.words)
    words = tuple(spelled(reading.words))
    response = answer.response
    struck_out = bool(words) or redacted() is not None
    body: dict[str, Any] = {
        "moves": reading.moves,
        "response": struck_answer(reading.response, words) if struck_out else reading.response,
        "model": response.model_name or answer.model,
        "asked_model": answer.model,
        "latency": answer.latency,
        "request_id": answer.request_id,
    } | accounts(response)
    said = {
        "replies": reading.replies, "plan": reading.plan, "thought": _thought(reading), "feedback": reading.feedback,
        "correction": reading.attempt if reading.feedback is not None else None,
    }  # fmt: skip
    return body | {name: struck_answer(value, words) for name, value in said.items() if value}


# Told by machines to machines: a result is found by its call's id, and a changed signature is refused.
KEPT_WHOLE = frozenset({
    "id", "tool_call_id", "tool", "tool_name", "signature", "part_kind", "kind", "state", "timestamp", "outcome",
    "provider_name", "provider_response_id", "model_name", "finish_reason", "cause",
})  # fmt: skip


def struck_answer(value: Any, words: tuple[str, ...]) -> Any:
    """A response or its parts, or what is said of it; what a model itself wrote is struck with all names in it."""
    if isinstance(value, list):
        return [struck_answer(item, words) for item in value]
    if not isinstance(value, dict):
        return struck(value, words)
    inner = {"parts": struck_answer}
    return {n: v if n in KEPT_WHOLE else inner.get(n, struck)(v, words) for n, v in value.items()}


def _text(response: dict[str, Any], kind: str) -> str:
    found = (part.get("content") for part in response["parts"] if part.get("part_kind") == kind)
    return "\n\n".join(text for text in found if isinstance(text, str) and text)


def _thought(reading: Reading) -> str:
    """What it said beside what it did."""
    ends = any("finish" in move for move in reading.moves)
    texts = [_text(reading.response, "thinking"), "" if ends else _text(reading.response, "text")]
    return thought_in(texts)


def thought_in(texts: Iterable[str]) -> str:
    """As a PLAN keeps it, beside the whole answer."""
    thought = "\n\n".join(text.strip() for text in texts if text.strip())
    return thought if len(thought) <= LONGEST_THOUGHT else f"{thought[:LONGEST_THOUGHT]}…"
