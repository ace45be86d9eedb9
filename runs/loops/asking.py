"""Asking a model: what would be sent is known before the ATTEMPT, and what is sent is checked against it."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as Late
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from pydantic_ai import ModelResponse
from pydantic_ai.direct import model_request, model_request_stream
from pydantic_ai.durable_exec import JSON_CODEC
from pydantic_ai.messages import (
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
)
from pydantic_ai.models import Model

from runs.loops.errors import ModelFailed
from runs.loops.exact import Request, request_of, shown_of
from runs.loops.failures import failure_of, no_answer_within
from runs.loops.providers import Heard, clients_of, heard, model_of, tells_its_end
from runs.loops.readable import without_access
from runs.loops.thread import submit

if TYPE_CHECKING:
    from runs.loops.declared import ModelLoop
    from runs.state import RunState

WATCH_SECONDS = 0.4  # between two calls of `watch`
LOOK_SECONDS = 0.1
Watch = Callable[[str, str], None]


@dataclass(frozen=True, slots=True)
class Prepared:
    """One request, ready to be sent. `client`: the packages that made its bytes; `size` in bytes."""

    model: str
    digest: str
    size: int
    client: str
    url: str
    asked: Model[Any]
    request: Request
    on_wire: bool


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole answer. `stored`: as a PLAN keeps it; `model`: as it was asked for; `latency` in seconds."""

    response: ModelResponse
    stored: dict[str, Any]
    model: str
    latency: float
    request_id: str | None = None


def prepare(content: Mapping[str, Any], state: RunState, model: str, loop: ModelLoop | None = None) -> Prepared:
    """The next request, asked of `model`. `content`: the release's; `loop`: for a model that it was given as an object.
    Raises ModelFailed if there is none to be made."""
    given = loop.object_of(model) if loop is not None else None
    request = request_of(content, state, model)
    shown = shown_of(content, request, model, loop)
    asked = given if given is not None else model_of(content["model"], model)
    if given is not None:  # it need not know what HTTP clients are told
        for name in ("max_retries", "parallel_tool_calls"):
            request.settings.pop(name, None)  # type: ignore[misc]
    on_wire = not shown.url.startswith("model:")
    return Prepared(model, shown.digest, len(shown.body), clients_of(asked), shown.url, asked, request, on_wire)


def unwatched(text: str, thinking: str) -> None:
    return None


def ask(prepared: Prepared, deadline: float, watch: Watch = unwatched, cancelled: Any = False) -> Answer:
    """`deadline`: monotonic seconds. `watch(text, thinking)`: all that has come so far, in the calling thread, at most
    every 0.4 s. `cancelled`: true once the answer is not wanted any more. Raises ModelFailed."""
    arriving = Arriving()
    began = time.monotonic()
    timeout = prepared.request.settings.get("request_timeout") or deadline - began
    future = submit(_asked(prepared, arriving))
    try:
        response, told = awaited(future, timeout, deadline, arriving, watch, cancelled)
    except BaseException as error:
        future.cancel()
        if not isinstance(error, Exception):
            raise
        raise failure_of(error) from error
    latency = round(time.monotonic() - began, 3)
    if not is_whole(prepared.asked, response):
        raise ModelFailed("cut_stream", "the answer ended before it was whole", request_id=told.request_id)
    try:
        response = replace(response, provider_url=without_access(response.provider_url))
        stored = JSON_CODEC.dump(ModelResponse, response)
    except Exception as error:
        raise ModelFailed("garbage", f"the answer cannot be kept: {error}", request_id=told.request_id) from error
    return Answer(response, stored, prepared.model, latency, told.request_id)


@dataclass(slots=True)
class Arriving:
    """What has come of an answer; written on the loop's thread, read on the caller's."""

    text: list[str] = field(default_factory=list)
    thinking: list[str] = field(default_factory=list)
    changed: threading.Event = field(default_factory=threading.Event)

    def add(self, event: Any) -> None:
        match event:
            case (
                PartStartEvent(part=TextPart(content=content))
                | PartDeltaEvent(delta=TextPartDelta(content_delta=content))
            ):
                self.text.append(content)
            case PartStartEvent(part=ThinkingPart(content=content)):
                self.thinking.append(content)
            case PartDeltaEvent(delta=ThinkingPartDelta(content_delta=str(content))):
                self.thinking.append(content)
            case _:
                return
        self.changed.set()


def awaited[T](
    future: Future[T], seconds: float, deadline: float, arriving: Arriving, watch: Watch, cancelled: Any
) -> T:
    """What comes of a request on the loop; what has come of it is told meanwhile. `seconds`: that it may take in all.
    Raises ModelFailed behind the deadline, and what the request raises."""
    told = 0.0
    while True:
        left = deadline - time.monotonic()
        if left <= 0:
            raise ModelFailed("timeout", no_answer_within(seconds))
        if cancelled:
            raise ModelFailed("unexpected", "the answer is not wanted any more: the run is cancelled")
        try:
            return future.result(min(left, LOOK_SECONDS))
        except Late:
            if future.done():
                raise
        if arriving.changed.is_set() and time.monotonic() - told >= WATCH_SECONDS:
            arriving.changed.clear()
            watch("".join(arriving.text), "".join(arriving.thinking))
            told = time.monotonic()


async def _asked(prepared: Prepared, arriving: Arriving) -> tuple[ModelResponse, Heard]:
    request = prepared.request
    now = Heard(prepared.digest if prepared.on_wire else None)
    heard.set(now)
    told: Any = {"model_settings": request.settings, "model_request_parameters": request.parameters}
    try:
        if not request.stream or not _streams(prepared.asked):
            return await model_request(prepared.asked, request.messages, **told), now
        async with model_request_stream(prepared.asked, request.messages, **told) as answer:
            async for event in answer:
                arriving.add(event)
        return answer.get(), now
    except asyncio.CancelledError:
        raise
    except Exception as error:
        failed = failure_of(error)
        failed.status, failed.request_id = failed.status or now.status, failed.request_id or now.request_id
        raise failed from error


def _streams(model: Model[Any]) -> bool:
    """A FunctionModel of tests has a function for one of the two, or for both."""
    return getattr(model, "stream_function", True) is not None


def is_whole(model: Model[Any], response: ModelResponse) -> bool:
    """A stream that ends too soon looks like an answer: only the provider's own word says that it was whole."""
    if response.state == "incomplete":
        return False
    if response.finish_reason == "content_filter":  # a refusal, for which there is no word of the end
        return True
    return not tells_its_end(model) or bool((response.provider_details or {}).get("finish_reason"))
