"""What went wrong with a request, as an ERROR tells it: by the class of the exception, never by its text."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from typing import Any

import httpx2
from pydantic_ai.exceptions import (
    AgentRunError,
    ModelAPIError,
    ModelAuthenticationError,
    ModelConnectionError,
    ModelContextWindowExceededError,
    ModelHTTPError,
    ModelNotFoundError,
    ModelOverloadedError,
    ModelQuotaExceededError,
    ModelRateLimitError,
    ModelRequestRejectedError,
    ModelRequestTimeout,
    ModelServerError,
    ModelTimeoutError,
    ModelUnavailableError,
    UnexpectedModelBehavior,
    UserError,
)

from runs.loops.errors import ModelFailed
from runs.loops.exact import cause_of
from runs.loops.providers import Differs
from runs.outcomes import describe

LONGEST = 1_000
SLOW = (httpx2.ReadTimeout, httpx2.WriteTimeout, httpx2.PoolTimeout)
# The first that fits; the more precise ones come before what they derive from.
CODES: tuple[tuple[type[BaseException], str], ...] = (
    (ModelQuotaExceededError, "quota"),
    (ModelRateLimitError, "rate_limited"),
    (ModelOverloadedError, "overloaded"),
    (ModelUnavailableError, "unavailable"),
    (ModelServerError, "server_error"),
    (ModelTimeoutError, "timeout"),
    (ModelRequestTimeout, "timeout"),
    (ModelConnectionError, "connection_lost"),
    (ModelAuthenticationError, "authentication"),
    (ModelNotFoundError, "not_found"),
    (ModelContextWindowExceededError, "context_too_long"),
    (ModelRequestRejectedError, "rejected"),
    (UserError, "rejected"),
    (UnicodeError, "rejected"),
    (UnexpectedModelBehavior, "garbage"),
    (TimeoutError, "timeout"),
    (asyncio.CancelledError, "timeout"),
    (httpx2.TimeoutException, "timeout"),
    (httpx2.TransportError, "connection_lost"),
    (ConnectionError, "connection_lost"),
)
# Anthropic has no code for it, so the library takes it for any other refusal: the one place where a text decides.
TOO_LONG = ("prompt is too long", "context length", "context window", "maximum context", "too many tokens")


def failure_of(error: BaseException) -> ModelFailed:
    """Of whatever a request raised."""
    if isinstance(error, ModelFailed):
        return error
    if (differs := cause_of(error, Differs)) is not None:
        return ModelFailed("unexpected", str(differs))
    http = error if isinstance(error, ModelHTTPError) else None
    return ModelFailed(
        code_of(error), says_of(error), retry_after=getattr(error, "retry_after", None),
        status=http.status_code if http else None, request_id=_request_id(http),
    )  # fmt: skip


def code_of(error: BaseException) -> str:
    if cause_of(error, httpx2.UnsupportedProtocol) is not None:  # of an address that can never work
        return "rejected"
    code = next((code for kind, code in CODES if isinstance(error, kind)), None)
    if code == "rejected" and any(words in str(error).lower() for words in TOO_LONG):
        return "context_too_long"
    if code is not None:
        return code
    if isinstance(error, ModelHTTPError):
        return "server_error" if error.status_code >= 500 else "rejected"
    return "garbage" if isinstance(error, (ModelAPIError, AgentRunError)) else "unexpected"


def says_of(error: BaseException) -> str:
    """As whoever is on call reads it: what the provider said, or which address did not answer, and why."""
    if isinstance(error, ModelHTTPError):
        said = f"{error.status_code}: {_told_by_provider(error.body) or 'no word about it'}"
    elif (http := cause_of(error, httpx2.RequestError)) is not None and not isinstance(http, SLOW):
        said = _of_connection(http)
    elif isinstance(error, (AgentRunError, UserError)) and str(error):
        said = str(error)
    else:
        said = describe(error)
    return said if len(said) <= LONGEST else f"{said[:LONGEST]}…"


def no_answer_within(seconds: float) -> str:
    """However it came out that the time was over."""
    return f"no answer within {seconds:g} s"


def _told_by_provider(body: Any) -> str:
    """The message in it; providers wrap it once or twice."""
    for _ in range(3):
        if not isinstance(body, Mapping):
            break
        body = body.get("error") or body.get("message") or body.get("detail")
    return " ".join(str(body).split()) if isinstance(body, (str, int)) else ""


def _of_connection(error: httpx2.RequestError) -> str:
    """An address may have a password in it: only host and port are told."""
    if isinstance(error, httpx2.UnsupportedProtocol):
        return f"base_url is no address: {error}"
    try:
        url = error.request.url
    except RuntimeError:  # it never came to a request
        return describe(error)
    port = url.port or {"https": 443, "http": 80}.get(url.scheme)
    why = _of_the_system(error) or str(error) or type(error).__name__
    what = "cannot be reached" if isinstance(error, (httpx2.ConnectError, httpx2.ConnectTimeout)) else "hung up"
    return f"{url.host}:{port} {what}: {why}"


def _of_the_system(error: BaseException | None) -> str | None:
    """What the operating system said, somewhere below."""
    for _ in range(20):
        if isinstance(error, OSError) and error.strerror:
            return os.strerror(error.errno) if error.errno is not None and error.errno > 0 else error.strerror
        if error is None:
            return None
        inner = error.exceptions[0] if isinstance(error, BaseExceptionGroup) else None
        error = inner or error.__cause__ or error.__context__
    return None


def _request_id(error: ModelHTTPError | None) -> str | None:
    headers = (error.headers if error is not None else None) or {}
    return headers.get("x-request-id") or headers.get("request-id")
