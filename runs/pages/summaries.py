"""One line an entry, for reading along: what was decided, sent, answered. The whole stands in the entry."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from journal.entries import Entry, Kind
from runs.slots import ASKS_FIRST, Repeat, repeats_in_words
from runs.state import MODEL_ACTOR
from runs.values import line


def summary(entry: Entry) -> str:
    return (other_text if entry.is_beyond else SUMMARIES.get(entry.kind, other_text))(entry)


def other_text(entry: Entry) -> str:
    return line(entry.body)


def plan_text(entry: Entry) -> str:
    body = entry.body
    if isinstance(left := body.get("compaction"), Mapping):
        return f"{left.get('left_out')} older {left.get('level')} are not shown to the model any more"
    moves = ", ".join(line(move.get("call") or next(iter(move), ""), 60) for move in listed(body, "moves"))
    replies = [reply for reply in listed(body, "replies") if reply.get("outcome") == "retried"]
    if replies and not moves:
        return f"sent back: {', '.join(line(reply.get('tool'), 60) for reply in replies)}"
    return line(body.get("thought") or moves or ("the model decided" if entry.actor == MODEL_ACTOR else "decided"))


def listed(body: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    """Empty where it is so long that it is kept outside of the entry."""
    found = body.get(name)
    return [each for each in found if isinstance(each, Mapping)] if isinstance(found, list) else []


def call_text(entry: Entry) -> str:
    args = ", ".join(f"{name}={line(value, 40)}" for name, value in entry.body.get("args", {}).items())
    return f"{entry.body.get('tool', '')}({line(args)})"


def attempt_text(entry: Entry) -> str:
    body = entry.body
    if entry.step is not None or body.get("source") != "model":
        return f"attempt {body.get('attempt', '')}, source: {body.get('source', '')}"
    if body.get("lost"):
        return f"again, after a lost request: asks {asked_of(entry)}"
    return f"{'again: ' if body.get('attempt', 1) != 1 else ''}asks {asked_of(entry)}"


def asked_of(entry: Entry) -> str:
    """Whom a request asks."""
    return line(entry.body["model"], 80) if entry.body.get("model") else "its model"


def asked_again(entry: Entry, failed: Entry) -> str:
    """An ATTEMPT behind the ERROR of the request before it, by the same model or another."""
    other = entry.body.get("model") != failed.body.get("model") and failed.body.get("model")
    code = line(failed.body["code"], 40).replace("_", " ") if failed.body.get("code") else "an error"
    return f"{'' if other else 'again, '}after {WENT_WRONG.get(code, code)}: asks {asked_of(entry)}"


WENT_WRONG = {
    "rate limited": "too many requests", "overloaded": "an overload", "server error": "an error of its server",
    "unavailable": "no connection", "connection lost": "a lost connection", "cut stream": "an answer that was cut",
    "timeout": "no answer in time", "garbage": "an answer that nobody can read", "rejected": "a refusal",
    "authentication": "a refused key", "not found": "no such model", "quota": "a spent quota",
    "context too long": "more than it takes", "unexpected": "an error",
}  # fmt: skip


def error_text(entry: Entry) -> str:
    if entry.body.get("code") == ASKS_FIRST:
        return "nothing was done: the tool asks for approval first"
    code = f"{line(entry.body['code'], 40)}: " if entry.body.get("code") else ""
    return f"{code}{line(entry.body.get('error'))}"


def result_text(entry: Entry) -> str:
    body = entry.body
    source = "" if body.get("source", "worker") == "worker" else f", source: {body['source']}"
    said = line(body["error"]) if body.get("error") is not None else line(body.get("result"))
    return f"{body.get('outcome', '')}{source}. {said}"


def approval_text(entry: Entry) -> str:
    note = entry.body.get("note")
    who = "" if entry.body.get("verdict") == "requested" else f" by {entry.actor}"
    if repeats := entry.body.get("repeats"):
        who += f": {repeats_in_words([Repeat.of(repeat) for repeat in repeats])}"
    return f"{entry.body.get('verdict', '')}{who}" + (f". {line(note)}" if note else "")


def reconcile_text(entry: Entry) -> str:
    evidence = entry.body.get("evidence")
    verdict = str(entry.body.get("verdict", "")).replace("_", " ")
    return f"{verdict} by {entry.actor}" + (f". {line(evidence)}" if evidence else "")


def timer_text(entry: Entry) -> str:
    body = entry.body
    if body.get("verb") != "set":
        return "fired"
    until = "" if body.get("due") is None else f"until {moment(body['due'])}"
    if "signal" not in body:
        return until or "set"
    return f"waits for the signal {line(body['signal'], 80)}" + (f", {until}" if until else "")


def moment(seconds: float) -> str:
    return f"{datetime.fromtimestamp(float(seconds), UTC):%Y-%m-%d %H:%M:%S} UTC"


def ask_text(entry: Entry) -> str:
    return line(entry.body.get("question"))


def answer_text(entry: Entry) -> str:
    return (
        "nobody answered in time"
        if entry.body.get("expired")
        else f"{line(entry.body.get('value'))}, says {entry.actor}"
    )


def signal_text(entry: Entry) -> str:
    payload = entry.body.get("payload")
    return (
        line(entry.body.get("name"), 80) + ("" if payload is None else f": {line(payload)}") + f", from {entry.actor}"
    )


def child_text(entry: Entry) -> str:
    body = entry.body
    if body.get("verb") == "spawned":
        return f"{line(body.get('agent'), 80)}({line(body.get('input'), 80)})"
    if body.get("verb") == "born":
        return "started, once the relatives were looked at"
    said = body.get("error") if body.get("error") is not None else body.get("result")
    return f"{body.get('outcome', '')}. {line(said)}"


def pin_text(entry: Entry) -> str:
    """The releases' names stand below the line: the journal has their digests."""
    reason = entry.body.get("reason")
    return f"moved by {entry.actor}" + (f". {line(reason)}" if reason else "")


def control_text(entry: Entry) -> str:
    body = entry.body
    verb = f"forked at seq {body.get('at')}" if body.get("verb") == "fork" else body.get("verb", "")
    repeats = [Repeat.of(repeat) for repeat in body.get("repeats") or ()]
    same = f": {repeats_in_words(repeats)}" if repeats else ""
    return f"{verb} by {entry.actor}{same}" + (f". {line(body['reason'])}" if body.get("reason") else "")


def done_text(entry: Entry) -> str:
    name = next((name for name in ("result", "error", "cancelled") if name in entry.body), "")
    return f"{name}: {line(entry.body.get(name))}"


SUMMARIES: dict[str, Callable[[Entry], str]] = {
    Kind.START: lambda e: line(e.body.get("input")),
    Kind.PLAN: plan_text,
    Kind.TOOL_CALL: call_text,
    Kind.ATTEMPT: attempt_text,
    Kind.OBS: result_text,
    Kind.ERROR: error_text,
    Kind.APPROVAL: approval_text,
    Kind.RECONCILE: reconcile_text,
    Kind.ASK: ask_text,
    Kind.ANSWER: answer_text,
    Kind.TIMER: timer_text,
    Kind.SIGNAL: signal_text,
    Kind.CHILD: child_text,
    Kind.PIN: pin_text,
    Kind.CONTROL: control_text,
    Kind.NOTE: lambda e: line(e.body.get("text", e.body)),
    Kind.DONE: done_text,
}
