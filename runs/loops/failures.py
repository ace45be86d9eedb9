"""What went wrong with a request, as an ERROR tells it: by the class of the exception, never by its text."""

from __future__ import annotations

import asyncio

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
    code = next((code for kind, code in CODES if isinstance(error, kind)), None)
    if code == "rejected" and any(words in str(error).lower() for words in TOO_LONG):
        return "context_too_long"
    if code is not None:
        return code
    if isinstance(error, ModelHTTPError):
        return "server_error" if error.status_code >= 500 else "rejected"
    return "garbage" if isinstance(error, (ModelAPIError, AgentRunError)) else "unexpected"


def says_of(error: BaseException) -> str:
    said = describe(error)
    return said if len(said) <= LONGEST else f"{said[:LONGEST]}…"


def _request_id(error: ModelHTTPError | None) -> str | None:
    headers = (error.headers if error is not None else None) or {}
    return headers.get("x-request-id") or headers.get("request-id")
