"""The payments service as a tool sees it: what is surely not done, and what nobody knows.

A tool may say "not done" only when it knows. A refused connection is known: nothing was sent. A lost answer is not, and
such an exception is let through: the engine then calls the outcome unknown and asks by key.
"""

import atexit
import os
import threading
from functools import cache
from typing import Any
from urllib.parse import quote

import httpx

from runs.sdk import Absent, Found, PermanentError, ToolContext, TransientError, Undecided

# All together below the tools' own timeout of 20 s, so that a thread is never left behind in a request.
TIMEOUTS = httpx.Timeout(connect=2, read=12, write=3, pool=2)
NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)


def get(path: str) -> Any:
    """The answer's JSON. Raises as `post` does."""
    return _answer("GET", path)


def post(ctx: ToolContext, path: str, **args: Any) -> Any:
    """The answer's JSON; sent under the key of the call.

    Raises PermanentError (refused, not done), TransientError (not done, try again), or httpx.HTTPError: may be done.
    """
    return _answer("POST", path, json=args, headers={"Idempotency-Key": ctx.key})


def find_by_key(ctx: ToolContext, **_args: Any) -> Found | Absent | Undecided:
    """The probe of every keyed tool here: the service remembers what it answered under a key."""
    try:
        response = _client().get(f"{_service()}/status/{quote(ctx.key)}")
    except httpx.HTTPError as error:
        return Undecided(str(error) or type(error).__name__)
    if response.status_code == httpx.codes.NOT_FOUND:
        return Absent()
    if response.status_code != httpx.codes.OK:
        return Undecided(f"the service answered {response.status_code}")
    return Found(response.json()["result"])


def fault(action: str, fault: str, **details: Any) -> None:
    """Order a fault of the service, if it is there. For the demo and for rehearsals."""
    try:
        _client().post(f"{_service()}/faults", json={"action": action, "fault": fault, **details})
    except httpx.HTTPError:
        pass


def _answer(method: str, path: str, **request: Any) -> Any:
    try:
        response = _client().request(method, _service() + path, **request)
    except NOT_SENT as error:
        raise TransientError(f"cannot reach the payments service: {error}") from error
    if response.status_code == httpx.codes.TOO_MANY_REQUESTS:
        raise TransientError("the payments service asks for patience", retry_after=_retry_after(response))
    if response.is_client_error and response.status_code != httpx.codes.REQUEST_TIMEOUT:
        raise PermanentError(_reason(response))
    return response.raise_for_status().json()


def _reason(response: httpx.Response) -> str:
    try:
        return str(response.json()["error"])
    except (ValueError, LookupError, TypeError):
        return f"the payments service answered {response.status_code}"


def _retry_after(response: httpx.Response) -> float | None:
    """Seconds; None where the header is missing or a date, which then means the tool's own backoff."""
    try:
        return float(response.headers.get("Retry-After", ""))
    except ValueError:
        return None


def _service() -> str:
    return os.environ.get("HOLDFAST_PAYMENTS_URL", "http://127.0.0.1:8010").rstrip("/")


_making = threading.Lock()


def _client() -> httpx.Client:
    """One for the process, made at the first call: after a worker has forked, never before."""
    with _making:  # two first calls side by side would make two, and lose the connections of one
        return _one_client()


@cache
def _one_client() -> httpx.Client:
    client = httpx.Client(timeout=TIMEOUTS, trust_env=False)
    atexit.register(client.close)
    return client
