"""When a command says no: the same dialog again, with what is so now in front of what was written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse

from recovery.errors import AlreadyReconciled, AttemptOutdated
from recovery.items import ItemPage
from recovery.wording import clock, differences
from runs.errors import (
    AlreadyAnswered,
    AlreadyDecided,
    ApprovalExpired,
    DigestMismatch,
    FourEyes,
    NotYourApproval,
    RunEnded,
)
from runs.state import fold

WORDS = {"granted": "granted", "denied": "rejected", "edited": "edited", "expired": "expired"}


@dataclass(frozen=True, slots=True)
class No:
    """Why not: what is so, and what was not done. `over`: nothing is left to decide."""

    heading: str
    text: str
    hue: str = "warn"
    over: bool = False


def no_of(error: Exception, page: ItemPage, digest: str, me: str) -> No:
    match error:
        case AlreadyDecided():
            return late(error, me, WORDS.get(error.verdict, error.verdict) + " it")
        case AlreadyReconciled() | AlreadyAnswered():
            return late(error, me, "answered: " + str(error.verdict).replace("_", " "))
        case DigestMismatch():
            return No("This is not what you opened: the arguments changed", changed(page, digest), "approval")
        case ApprovalExpired():
            told = "The run stays parked until somebody asks for approval anew."
            if page.slot.settled:
                told = f"{page.run.agent} hears of it."
            text = f"Nothing was sent, and your answer was not written. {told}"
            return No(f"Expired at {clock(error.at)}", text, "off", True)
        case FourEyes() | NotYourApproval():
            return No("Another person has to sign", f"{error} Nothing was approved.", "approval", True)
        case RunEnded() | AttemptOutdated():
            return No(str(error), "Your answer was not written.", over=isinstance(error, RunEnded))
    return No("Your answer was not written", str(error))


def late(error: Any, me: str, said: str) -> No:
    """Somebody was first: another, or this one by a second click, another tab, or the way back."""
    if error.actor == me:
        text = "That counts, once. Nothing was written a second time."
        return No(f"You {said}, at {clock(error.at)}", text, "ok", True)
    return No(f"{error.actor} {said}, at {clock(error.at)}", "Your answer was not written.", over=True)


def changed(page: ItemPage, digest: str) -> str:
    """What differs from what was read, if the journal still knows that."""
    seen = [e.seq for e in page.entries if e.step == page.slot.step and e.body.get("digest") == digest]
    told = f"The digest is now {page.digest}; you read {digest}. Nothing was approved: read them again."
    if not seen:
        return told
    before = fold(page.run.id, page.entries[: seen[0]]).slots[page.slot.step].args
    names = differences(before, page.args)
    if not names:
        return f"The arguments are the same, and the tool has changed. {told}"
    pairs = ", ".join(f"{name} changed from {before.get(name)!r} to {page.args.get(name)!r}" for name in names)
    return f"{pairs}. {told}"


def on_refusal(request: HttpRequest, render: Callable[[Exception, int], HttpResponse]) -> None:
    """The answer of this page, should its command refuse: see `runs.pages.failures.refused`."""
    request.__dict__["say_no"] = render
