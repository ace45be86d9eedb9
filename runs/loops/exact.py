"""The exact request that a journal leads to: what the digest of an ATTEMPT is of, and what the model saw."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from concurrent.futures import TimeoutError as Late
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic_ai import ModelMessage, ModelMessagesTypeAdapter
from pydantic_ai.direct import model_request, model_request_stream
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.settings import ModelSettings

from journal.encoding import canonical
from journal.entries import Kind
from runs.loops.errors import ModelFailed
from runs.loops.messages import messages_of, parameters_of
from runs.loops.providers import NOWHERE, Captured, given_address, model_of, settings_of, takes_client
from runs.loops.thread import submit
from runs.state import RunState, fold

if TYPE_CHECKING:
    from journal.entries import Entry
    from runs.loops.declared import ModelLoop

SECONDS = 20.0
SECRET_HEADERS = frozenset({"authorization", "x-api-key", "api-key", "x-goog-api-key", "cookie", "proxy-authorization"})


@dataclass(frozen=True, slots=True)
class Exact:
    """A request, without what gives access. `digest`: sha256 of the body, in hexadecimal."""

    method: str
    url: str
    headers: dict[str, str]
    body: bytes
    digest: str


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked, before any client has made bytes of it."""

    messages: list[ModelMessage]
    parameters: ModelRequestParameters
    settings: ModelSettings
    stream: bool


def request_of(content: Mapping[str, Any], state: RunState, model: str) -> Request:
    settings = settings_of(content["model"], model, state.affinity or str(state.root))
    parameters = parameters_of(content, state.context)
    return Request(messages_of(content, state, model), parameters, settings, bool(content["model"].get("stream", True)))


def exact(content: Mapping[str, Any], state: RunState, model: str, loop: ModelLoop | None = None) -> Exact:
    """The next request, asked of this model. `content`: the release's; no code of the agent is needed, but where it was
    given a model as an object, there is no request over HTTP to show. Raises ModelFailed if none can be made."""
    return shown_of(content, request_of(content, state, model), model, loop)


def shown_of(content: Mapping[str, Any], request: Request, model: str, loop: ModelLoop | None = None) -> Exact:
    """The same of a request that is made already."""
    if loop is not None and loop.object_of(model) is not None:
        return without_wire(model, request)
    dry = model_of(content["model"], model, dry=True)
    sent = captured(dry, request) if takes_client(model) else None
    if sent is None:
        return without_wire(model, request)
    url = str(sent.url)
    if url.startswith(NOWHERE):
        url = f"{given_address(content['model'], model)}{url.removeprefix(NOWHERE)}"
    headers = {name: value for name, value in sent.headers.items() if name.lower() not in SECRET_HEADERS}
    return Exact(sent.method, url, headers, sent.content, hashlib.sha256(sent.content).hexdigest())


def exact_of(content: Mapping[str, Any], entries: Iterable[Entry], asked_seq: int) -> Exact:
    """The request of the ATTEMPT `asked_seq`. `entries`: with payloads loaded, from the first one on; `content`: of the
    release that the run was pinned to then. Raises LookupError if there is no such attempt, ModelFailed."""
    until = [entry for entry in entries if entry.seq <= asked_seq]
    attempt = until[-1] if until else None
    if attempt is None or attempt.seq != asked_seq or attempt.kind != Kind.ATTEMPT or "model" not in attempt.body:
        raise LookupError(f"entry {asked_seq} does not ask a model")
    return exact(content, fold(attempt.run_id, until), attempt.body["model"])


def captured(dry: Model[Any], request: Request) -> Any:
    """The HTTP request, or None of a provider whose client cannot be stopped before it sends. Raises ModelFailed."""
    try:
        submit(_send(dry, request)).result(SECONDS)
    except Late as error:
        raise ModelFailed("unexpected", "the request could not be made ready in time") from error
    except Exception as error:
        found = cause_of(error, Captured)
        if isinstance(found, Captured):
            return found.request
        raise ModelFailed("rejected", f"no request can be made: {type(error).__name__}: {error}") from error
    return None


async def _send(model: Model[Any], request: Request) -> None:
    told: Any = {"model_settings": request.settings, "model_request_parameters": request.parameters}
    if not request.stream:
        await model_request(model, request.messages, **told)
        return
    async with model_request_stream(model, request.messages, **told) as answer:
        async for _ in answer:
            pass


def without_wire(model: str, request: Request) -> Exact:
    """Of a model that is an object: what it is asked, as JSON."""
    messages = ModelMessagesTypeAdapter.dump_python(request.messages, mode="json")
    for told in messages:  # the time of an entry is a guess until it is committed, and no provider is told it
        for timed in (told, *told["parts"]):
            timed.pop("timestamp", None)
    tools = [[tool.name, tool.description, tool.parameters_json_schema] for tool in request.parameters.function_tools]
    prompt = [part.content for part in request.parameters.instruction_parts or ()]
    settings = {name: value for name, value in request.settings.items() if name != "request_timeout"}
    body = canonical({"messages": messages, "tools": tools, "prompt": prompt, "settings": settings})
    return Exact("POST", f"model:{model}", {}, body, hashlib.sha256(body).hexdigest())


def cause_of[E: BaseException](error: BaseException | None, kind: type[E]) -> E | None:
    """The first of this kind among an exception and its causes."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        if isinstance(error, kind):
            return error
        seen.add(id(error))
        error = error.__cause__ or error.__context__
    return None
