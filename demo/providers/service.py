"""From a request to what is to be sent, and how: the socket is server.py's."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from threading import Event as Gate
from typing import Any

from demo.providers.asked import Asked
from demo.providers.counting import tokens, usage_of
from demo.providers.dialects import DIALECTS
from demo.providers.dialects.dialect import Dialect, Event, Reply
from demo.providers.faults import REFUSALS, SPOILED, STREAMED, BadFault, Fault, Faults
from demo.providers.scenarios import Scenario, Scenarios
from demo.providers.seen import Record, Seen
from demo.providers.spoiled import spoiled
from demo.providers.turns import BadScript, Turn

GARBAGE = b"<html><body>502 Bad Gateway</body></html>"
JSON, STREAM = "application/json", "text/event-stream; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Request:
    """Header names in small letters."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Answer:
    """`pieces`: one, or the events of a stream. `wait`, `pace` in seconds: before the first byte, between pieces.

    `cut`: pieces (of a body: 1 is half of it) after which the connection goes, 0: without a byte.
    `held`: pieces after which it waits for `gate`.
    """

    status: int
    pieces: list[bytes]
    headers: Mapping[str, str] = field(default_factory=dict)
    content_type: str = JSON
    streamed: bool = False
    wait: float = 0.0
    pace: float = 0.0
    cut: int | None = None
    held: int | None = None
    gate: Gate | None = None
    seen: Seen | None = None
    whole: bool = False


class Service:
    """Scenarios, faults and what was asked, in memory."""

    def __init__(self, *, keep: int = 1000) -> None:
        self.scenarios = Scenarios()
        self.faults = Faults()
        self.record = Record(keep)

    def script(self, model: str, scenario: Scenario) -> None:
        """From now on it answers under this name."""
        self.scenarios.register(model, scenario)
        self.faults.begin(model)

    def answer(self, request: Request) -> Answer:
        dialect = DIALECTS.get(request.path) if request.method == "POST" else None
        if dialect is not None:
            return self._ask(dialect, request)
        try:
            return self._order(request)
        except (BadScript, BadFault) as error:
            return answer_json(422, {"error": str(error)})

    def _order(self, request: Request) -> Answer:
        """The other side: what tests and people order and read."""
        match request.method, request.path:
            case "POST", "/scenarios":
                wanted = _object(request.body)
                self.script(str(wanted.get("model")), Scenario.parse(wanted))
                return answer_json(201, {"model": wanted.get("model")})
            case "GET", "/scenarios" | "/":
                return answer_json(200, {"models": self.scenarios.names()})
            case "POST", "/faults":
                return answer_json(201, {"id": self.faults.order(Fault.parse(_object(request.body)))})
            case "GET", "/faults":
                return answer_json(200, {"faults": self.faults.active()})
            case "DELETE", "/faults":
                return answer_json(200, {"removed": self.faults.clear()})
            case "POST", "/release":
                self.faults.release()
                return answer_json(200, {})
            case "GET", "/requests":
                seen = self.record.of(request.query.get("model"))
                return answer_json(200, {"requests": [each.as_json() for each in seen]})
            case "DELETE", "/requests":
                return answer_json(200, {"removed": self.record.clear()})
            case "POST", "/v1/messages/count_tokens":
                return answer_json(200, {"input_tokens": tokens(len(request.body))})
        return answer_json(404, {"error": "There is nothing here."})

    def _ask(self, dialect: Dialect, request: Request) -> Answer:
        try:
            body = _object(request.body)
            asked = Asked(
                dialect.name, str(body.get("model")), bool(body.get("stream")), body, request.body, dialect.read(body)
            )
        except (BadScript, BadFault, KeyError, TypeError, AttributeError) as error:
            return mistaken(dialect, f"Not understood: {type(error).__name__}: {error}")
        seen = self.record.note(
            dialect=dialect.name, model=asked.model, path=request.path, raw=request.body, headers=request.headers,
            stream=asked.stream,
        )  # fmt: skip
        answer = self._model(dialect, asked, seen, request.headers)
        return replace(answer, seen=seen, headers={**answer.headers, dialect.request_id: seen.request_id})

    def _model(self, dialect: Dialect, asked: Asked, seen: Seen, headers: Mapping[str, str]) -> Answer:
        scenario = self.scenarios[asked.model]
        if "authorization" not in headers and "x-api-key" not in headers:
            return refused(dialect, Fault("authentication"), asked.model)
        if scenario is None:
            return refused(dialect, Fault("not_found"), asked.model)
        if scenario.context is not None and tokens(len(asked.raw)) > scenario.context:
            return refused(dialect, Fault("context_length"), asked.model)
        seen.turn = asked.turn
        if (why := dialect.fault(asked.body)) is not None:
            return mistaken(dialect, why)
        try:
            turn = scenario.turn(asked)
            fault = self.faults.take(asked.model, asked.turn, turn.faults)
            seen.fault = fault.kind if fault else None
            if fault is not None and fault.kind in REFUSALS:
                return refused(dialect, fault, asked.model)
            if fault is not None and fault.kind in SPOILED:
                turn = spoiled(turn, fault.kind)
            if fault is not None and fault.kind in STREAMED and not asked.stream:
                raise BadScript(f"{fault.kind} is for a stream, and this is none.")
        except BadScript as error:
            # A script with a hole is the test's mistake: it is said so loudly, in the answer.
            return mistaken(dialect, str(error))
        reply = Reply(turn, asked.turn, turn.model or asked.model, turn.usage or usage_of(asked, turn), asked.body)
        seen.usage = reply.usage
        return delivered(_told(dialect, reply, asked.stream), dialect, fault, self.faults)


def _told(dialect: Dialect, reply: Reply, stream: bool) -> Answer:
    turn: Turn = reply.turn
    if stream:
        pieces = [framed(event) for event in dialect.events(reply)]
        return Answer(200, pieces, content_type=STREAM, streamed=True, wait=turn.wait, pace=turn.pace, whole=True)
    return Answer(200, [json.dumps(dialect.whole(reply)).encode()], wait=turn.wait, whole=True)


def delivered(answer: Answer, dialect: Dialect, fault: Fault | None, faults: Faults) -> Answer:
    """As a fault on the way leaves it."""
    if fault is None or fault.kind in SPOILED:
        return answer
    pieces = answer.pieces
    after = min(fault.after if fault.after is not None else max(1, len(pieces) // 2), max(1, len(pieces) - 1))
    match fault.kind:
        case "cut_before":
            return replace(answer, cut=0, whole=False)
        case "cut":
            return replace(answer, cut=after, whole=False)
        case "early_end":
            return replace(answer, pieces=pieces[:after], whole=False)
        case "error_event":
            return replace(answer, pieces=[*pieces[:after], framed(dialect.broken)], whole=False)
        case "garbage":
            return replace(answer, pieces=[GARBAGE], streamed=False, content_type=JSON, whole=False)
        case "delay":
            return replace(answer, wait=answer.wait + fault.seconds)
        case "slow":
            return replace(answer, pace=fault.seconds)
        case "hold":
            return replace(answer, held=(fault.after or 0) if answer.streamed else 0, gate=faults.gate())
    raise AssertionError(f"{fault.kind} is no delivery")


def refused(dialect: Dialect, fault: Fault, model: str) -> Answer:
    status, body = dialect.refusal(fault.kind, model)
    headers: dict[str, str] = {}
    if fault.kind == "rate_limit_date":
        at = datetime.now(UTC) + timedelta(seconds=fault.retry_after or 0)
        headers["retry-after"] = format_datetime(at, usegmt=True)
    elif fault.retry_after is not None:
        headers["retry-after"] = f"{fault.retry_after:g}"
    return replace(answer_json(status, body), headers=headers)


def mistaken(dialect: Dialect, why: str) -> Answer:
    status, said = dialect.refusal("bad_request", "")
    return answer_json(status, {**said, "error": {**said["error"], "message": why}})


def framed(event: Event) -> bytes:
    """As an event of server-sent events."""
    name, data = event
    text = data if isinstance(data, str) else json.dumps(data)
    return ((f"event: {name}\n" if name else "") + f"data: {text}\n\n").encode()


def answer_json(status: int, body: Any) -> Answer:
    return Answer(status, [json.dumps(body).encode()])


def _no_number(name: str) -> Any:
    raise BadScript(f"No JSON: {name}")


def _object(body: bytes) -> dict[str, Any]:
    try:
        value = json.loads(body, parse_constant=_no_number)
    except ValueError as error:
        raise BadScript(f"No JSON: {error}") from None
    if not isinstance(value, dict):
        raise BadScript("A JSON object is wanted.")
    return value
