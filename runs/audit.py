"""The audit list: who did what, when, through which door. A record is written in the transaction of what it tells of.

Whoever lets people in says so first: the middleware for a request, a command at a shell for itself (`through`).
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from inspect import iscoroutinefunction
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import connection
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.decorators import sync_and_async_middleware

from journal.entries import Draft, Kind
from runs.secrets import struck, struck_text
from runs.state import MACHINES
from runs.texts import plain_text

LONGEST_NAME = 200
PROGRAMS = MACHINES | {"sdk"}  # who starts a run in code and gives no name
RECORD = """SELECT runs_audit_v2(true, %(actor)s, %(act)s, %(door)s, %(address)s, %(about)s::uuid, %(agent)s,
    %(subject)s, %(why)s, %(detail)s::jsonb)"""
VERDICTS = {"granted": "intent.approve", "denied": "intent.deny", "edited": "intent.edit", "asked": "intent.ask"}


@dataclass(frozen=True, slots=True)
class Door:
    """Where somebody came in: `page`, `api`, `shell`, or `system` for what nobody asked for just now."""

    name: str = "system"
    address: str = ""


SYSTEM = Door()
_door: ContextVar[Door] = ContextVar("door", default=SYSTEM)


def door() -> Door:
    return _door.get()


@contextmanager
def through(name: str, address: str = "") -> Iterator[None]:
    """What is recorded inside came through this door."""
    before = _door.set(Door(name, address))
    try:
        yield
    finally:
        _door.reset(before)


def door_of(request: HttpRequest) -> Door:
    name = "api" if request.path.startswith("/api/") else "page"
    return Door(name, client_address(request))


def client_address(request: HttpRequest) -> str:
    """Of the client, as the outermost of our own proxies (HOLDFAST_PROXIES) saw it. What a client says of itself stands
    before that, and is not believed."""
    hops = [hop.strip() for hop in request.headers.get("X-Forwarded-For", "").split(",") if hop.strip()]
    proxies = settings.HOLDFAST_PROXIES
    seen = hops[-proxies] if 0 < proxies <= len(hops) else str(request.META.get("REMOTE_ADDR") or "")
    return plain_text(seen)[:LONGEST_NAME]


type Answering = Callable[[HttpRequest], HttpResponseBase] | Callable[[HttpRequest], Awaitable[HttpResponseBase]]


@sync_and_async_middleware
def doors(get_response: Any) -> Answering:
    """The middleware: each request comes through its door."""
    if iscoroutinefunction(get_response):

        async def entering(request: HttpRequest) -> HttpResponseBase:
            with through(*_parts(request)):
                answer: HttpResponseBase = await get_response(request)
                return answer

        return entering

    def entered(request: HttpRequest) -> HttpResponseBase:
        with through(*_parts(request)):
            answer: HttpResponseBase = get_response(request)
            return answer

    return entered


def _parts(request: HttpRequest) -> tuple[str, str]:
    found = door_of(request)
    return found.name, found.address


def record(
    actor: str, act: str, *, run: UUID | None = None, agent: str = "", subject: str = "", reason: str = "",
    **detail: Any,
) -> None:  # fmt: skip
    """One record, in the caller's transaction. `act` is `run.cancel`, `gate.place` …; `detail` is kept as JSON."""
    with connection.cursor() as cursor:
        cursor.execute(RECORD, told(actor, act, run, agent, subject, reason, detail))


def told(
    actor: str, act: str, run: UUID | None, agent: str, subject: str, reason: str, detail: Mapping[str, Any]
) -> dict[str, Any]:
    """The arguments of `runs_audit_v2`, as text columns can keep them."""
    by = door()
    return {
        "actor": plain_text(actor)[:LONGEST_NAME],
        "act": act,
        "door": by.name,
        "address": by.address,
        "about": run,
        "agent": plain_text(agent),
        "subject": struck_text(plain_text(subject)),
        "why": struck_text(plain_text(reason)),
        "detail": json.dumps(struck(kept(detail)), allow_nan=False),
    }


def kept(value: Any) -> Any:
    """As a JSON column can keep it; what is no JSON is told in words."""
    match value:
        case Mapping():
            return {plain_text(str(name)): kept(inner) for name, inner in value.items()}
        case str():
            return plain_text(value)
        case list() | tuple() | set() | frozenset():
            return [kept(inner) for inner in value]
        case None | bool() | int():
            return value
        case _:
            return plain_text(str(value))


def record_entries(run: UUID, agent: str, entries: Sequence[Draft], first_seq: int | None, actor: str) -> None:
    """What a person's entries in a journal amount to: each act once. What a machine appends is no act of a person."""
    if actor in PROGRAMS:
        return
    for place, entry in enumerate(entries):
        act, detail = act_of(entry)
        if act:
            seq = {} if first_seq is None else {"seq": first_seq + place}
            reason = entry.body.get("reason") or entry.body.get("note") or entry.body.get("evidence") or ""
            subject = "" if entry.step is None else f"step {entry.step}"
            record(actor, act, run=run, agent=agent, subject=subject, reason=str(reason), **seq, **detail)


def act_of(entry: Draft) -> tuple[str, dict[str, Any]]:
    """Its name, and what else is worth telling. None for an entry that comes with another, as an OBS does."""
    body = entry.body
    match entry.kind:
        case Kind.CONTROL:
            return f"run.{body['verb']}", {}
        case Kind.NOTE:
            return "run.note", {"text": str(body.get("text", ""))[:LONGEST_NAME]}
        case Kind.SIGNAL:
            return "run.signal", {"name": body["name"]}
        case Kind.ANSWER:
            return "run.answer", {}
        case Kind.APPROVAL:
            return VERDICTS.get(body["verdict"], f"intent.{body['verdict']}"), {"digest": body.get("digest", "")}
        case Kind.RECONCILE:
            return "intent.reconcile", {"verdict": body["verdict"]}
        case Kind.PIN:
            return "run.pin", {name: body[name] for name in ("release", "from", "verdict") if name in body}
    return "", {}
