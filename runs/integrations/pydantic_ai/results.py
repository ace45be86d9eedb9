"""What a tool's call came to, in the library's words and in the journal's.

An OBS holds the plain result, so that people can read it and a person or a probe can give one. What the library has
other words for (ask the model again, wrong arguments, deferred) is kept as those words: a dict with their `kind`.
"""

from __future__ import annotations

from typing import Any

from runs.slots import Slot

WORDS = frozenset({
    "approval_required", "call_deferred", "model_retry", "validation_error", "tool_return", "tool_content_result",
    "tool_failed", "run_cancelled",
})  # fmt: skip
ASKS_FIRST = "approval_required"
FAILED = "tool_failed"


def as_result(payload: dict[str, Any]) -> Any:
    """As it is journaled."""
    result = payload.get("result")
    told = {name for name, value in payload.items() if name in ("kind", "result") or value}  # of files: which they are
    plain = told == {"kind", "result"} and payload["kind"] == "tool_return"
    return result if plain and not _in_words(result) else payload


def as_payload(slot: Slot, asked_first: bool = False) -> dict[str, Any]:
    """Of a settled call, as the library records it. A denial is told by the handler of deferred calls, which is asked
    about what needs approval; `asked_first`: once a call, and of this one it has been."""
    match slot.outcome:
        case "succeeded":
            return slot.result if _in_words(slot.result) else {"kind": "tool_return", "result": slot.result}
        case "denied" if not asked_first:
            return {"kind": ASKS_FIRST, "metadata": None}
        case _:
            return {"kind": FAILED, "message": slot.error or f"it was {slot.outcome}"}


def _in_words(result: Any) -> bool:
    return isinstance(result, dict) and result.get("kind") in WORDS
