"""Requests to answers: the service without its sockets."""

import json
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from demo.payments import page
from demo.payments.actions import ACTIONS, Refused
from demo.payments.books import batch_of, book_named
from demo.payments.faults import BadFault, Fault, Faults
from demo.payments.ledger import KeyConflict, Ledger
from demo.payments.offers import KINDS, offers
from demo.payments.orders import history_of, order_named
from demo.payments.storage import Storage

LARGEST_PAGE = 1000


@dataclass(frozen=True, slots=True)
class Request:
    """`keys`: header names in lower case. `argument`: the variable part of the path."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    argument: str = ""

    @property
    def key(self) -> str | None:
        return self.headers.get("idempotency-key") or None

    @property
    def reference(self) -> str | None:
        return self.headers.get("x-reference") or None

    def json(self) -> Any:
        try:
            return json.loads(self.body or b"null")
        except ValueError:
            raise Refused("The body is not JSON.") from None


@dataclass(frozen=True, slots=True)
class Answer:
    """`wait`: seconds before it goes out. `cut`: the connection ends without it."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    content_type: str = "application/json"
    wait: float = 0
    cut: bool = False


def answer_json(status: int, value: Any, **headers: str) -> Answer:
    return Answer(status, json.dumps(value).encode(), headers)


class Service:
    def __init__(self, storage: Storage) -> None:
        self.ledger = Ledger(storage)
        self.faults = Faults(storage)
        self._routes: list[tuple[str, re.Pattern[str], Callable[[Request], Answer]]] = [
            ("GET", re.compile(r"/"), self._page),
            ("GET", re.compile(r"/ledger\.css"), self._stylesheet),
            ("GET", re.compile(r"/orders/(?P<argument>[^/]+)/history"), self._history),
            ("GET", re.compile(r"/orders/(?P<argument>.+)"), self._order),
            ("GET", re.compile(rf"/offers/(?P<argument>{'|'.join(KINDS)})"), self._offers),
            ("GET", re.compile(r"/books/(?P<argument>[^/]+)"), self._book),
            ("GET", re.compile(r"/books/(?P<argument>[^/]+/[0-9]{1,3})"), self._batch),
            ("POST", re.compile(rf"/(?P<argument>{'|'.join(ACTIONS)})"), self._act),
            ("GET", re.compile(r"/status/(?P<argument>.+)"), self._status),
            ("GET", re.compile(r"/effects"), self._effects),
            ("GET", re.compile(r"/faults"), self._list_faults),
            ("POST", re.compile(r"/faults"), self._order_fault),
            ("DELETE", re.compile(r"/faults"), self._clear_faults),
            ("GET", re.compile(r"/count/(?P<argument>.+)"), self._counted),
            ("POST", re.compile(r"/count/(?P<argument>.+)"), self._count),
        ]

    def answer(self, request: Request) -> Answer:
        methods = []
        for method, pattern, view in self._routes:
            if match := pattern.fullmatch(request.path):
                if method == request.method:
                    try:
                        return view(replace(request, argument=match.groupdict().get("argument", "")))
                    except Refused as refused:
                        return answer_json(422, {"error": str(refused)})
                methods.append(method)
        if methods:
            return answer_json(405, {"error": "Not this way."}, Allow=", ".join(methods))
        return answer_json(404, {"error": "There is nothing here."})

    def _act(self, request: Request) -> Answer:
        action, args = ACTIONS[request.argument], request.json()
        if not isinstance(args, dict):
            raise Refused("The body is not a JSON object.")

        def act() -> Answer:
            try:
                done = self.ledger.act(action, args, key=request.key, reference=request.reference)
            except KeyConflict as conflict:
                return answer_json(409, {"error": conflict.__doc__})
            return answer_json(200, {**done.result, "replayed": done.replayed})

        return self._under_fault(action.name, request.key or request.reference, act)

    def _order(self, request: Request) -> Answer:
        def look_up() -> Answer:
            return _known(order_named(request.argument), "order")

        return self._under_fault("order", request.reference, look_up)

    def _history(self, request: Request) -> Answer:
        def look_up() -> Answer:
            told = history_of(request.argument, datetime.now(UTC).date())
            for done in self.ledger.refunds_of(request.argument):
                note = f"{done['args']['amount_cents'] / 100:.2f} paid back."
                told.append({"what": "refunded", "day": done["at"][:10], "note": note})
            return _known({"events": told} if told else None, "order")

        return self._under_fault("order", request.reference, look_up)

    def _offers(self, request: Request) -> Answer:
        to, day = request.query.get("to", ""), request.query.get("day", "")
        found = {"offers": offers(request.argument, to, day)}
        return self._under_fault("offers", request.reference, lambda: answer_json(200, found))

    def _book(self, request: Request) -> Answer:
        return self._under_fault("books", request.reference, lambda: _known(book_named(request.argument), "ledger"))

    def _batch(self, request: Request) -> Answer:
        ledger, _, number = request.argument.partition("/")
        found = batch_of(ledger, int(number)) if book_named(ledger) else None
        return self._under_fault("books", request.reference, lambda: _known(found, "batch"))

    def _status(self, request: Request) -> Answer:
        def look_up() -> Answer:
            result = self.ledger.answer_of(request.argument)
            if result is None:
                return answer_json(404, {"found": False})
            return answer_json(200, {"found": True, "result": result})

        return self._under_fault("status", request.argument, look_up)

    def _under_fault(self, action: str, key: str | None, perform: Callable[[], Answer]) -> Answer:
        fault = self.faults.take(action, key)
        if fault is None:
            return perform()
        if fault.fault in REFUSALS:
            return REFUSALS[fault.fault](fault)
        if fault.fault == "delay":
            # The caller may be gone when this ends; it acts all the same, as a slow network would have it.
            time.sleep(fault.seconds)
            return perform()
        return SPOILED[fault.fault](fault, perform())

    def _effects(self, request: Request) -> Answer:
        key, after = request.query.get("key"), _number(request, "after", 0)
        limit = min(_number(request, "limit", LARGEST_PAGE if key else 100), LARGEST_PAGE)
        effects = self.ledger.effects(key=key, after=after, limit=limit)
        total, replays = self.ledger.totals(key)
        more = effects[-1]["id"] if len(effects) == limit and effects else None
        return answer_json(200, {"effects": effects, "total": total, "replays": replays, "next_after": more})

    def _list_faults(self, _request: Request) -> Answer:
        return answer_json(200, {"faults": self.faults.active()})

    def _order_fault(self, request: Request) -> Answer:
        try:
            fault = Fault.parse(request.json())
        except BadFault as bad:
            raise Refused(str(bad)) from None
        return answer_json(201, {"id": self.faults.order(fault)})

    def _clear_faults(self, _request: Request) -> Answer:
        return answer_json(200, {"removed": self.faults.clear()})

    def _count(self, request: Request) -> Answer:
        return answer_json(200, {"name": request.argument, "count": self.ledger.count(request.argument)})

    def _counted(self, request: Request) -> Answer:
        return answer_json(200, {"name": request.argument, "count": self.ledger.counted(request.argument)})

    def _page(self, _request: Request) -> Answer:
        html = page.render(self.ledger.latest_effects(50), self.ledger.totals(None), self.faults.active())
        return Answer(200, html.encode(), page.HEADERS, "text/html; charset=utf-8")

    def _stylesheet(self, _request: Request) -> Answer:
        return Answer(200, page.STYLESHEET, {}, "text/css; charset=utf-8")


REFUSALS: dict[str, Callable[[Fault], Answer]] = {
    "fail": lambda _: answer_json(500, {"error": "The service failed before it acted."}),
    "reject": lambda _: answer_json(422, {"error": "Refused, and nothing was done."}),
    "rate_limit": lambda fault: answer_json(
        429, {"error": "Too many requests."}, **{"Retry-After": f"{fault.retry_after:g}"}
    ),
}
SPOILED: dict[str, Callable[[Fault, Answer], Answer]] = {
    "hang": lambda fault, answer: replace(answer, wait=fault.seconds, cut=True),
    "late": lambda fault, answer: replace(answer, wait=fault.seconds),
    "drop": lambda _, answer: replace(answer, cut=True),
    "payload": lambda fault, answer: replace(answer, body=fault.payload()),
}


def _known(found: dict[str, Any] | None, what: str) -> Answer:
    return answer_json(404, {"error": f"There is no such {what}."}) if found is None else answer_json(200, found)


def _number(request: Request, name: str, default: int) -> int:
    text = request.query.get(name, str(default))
    if not re.fullmatch(r"[0-9]{1,15}", text):
        raise Refused(f"`{name}` must be a whole number.")
    return int(text)
