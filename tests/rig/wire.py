"""How the rig's tools reach the ledger: plain http.client, so that each failure is plainly seen."""

import http.client
import json
import os
from typing import Any
from urllib.parse import quote, urlsplit

from runs.sdk import Absent, Found, PermanentError, ToolContext, TransientError, Undecided

# Longer than any tool's timeout: it is the engine's clock that has to end a call.
PATIENCE = 120.0


def send(method: str, path: str, body: Any = None, **headers: str) -> Any:
    """The answer's JSON. Raises PermanentError and TransientError only where nothing was done."""
    address = urlsplit(os.environ["HOLDFAST_PAYMENTS_URL"])
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=PATIENCE)
    try:
        connection.connect()
    except OSError as refused:
        raise TransientError(f"cannot connect: {refused}") from refused
    try:
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        response = connection.getresponse()
        text = response.read()
    finally:
        connection.close()
    if response.status == http.client.TOO_MANY_REQUESTS:
        raise TransientError("too many requests", retry_after=float(response.headers.get("Retry-After", "0")))
    if 400 <= response.status < 500:
        raise PermanentError(text.decode())
    if response.status >= 500:
        raise RuntimeError(f"answered {response.status}")
    return json.loads(text)


def act(ctx: ToolContext, action: str, **args: Any) -> Any:
    """An effect that the service can be asked about by our key."""
    return send("POST", f"/{action}", args, **{"Idempotency-Key": ctx.key})


def act_unkeyed(ctx: ToolContext, action: str, **args: Any) -> Any:
    """An effect that nobody can be asked about; the ledger alone knows whose it was."""
    return send("POST", f"/{action}", args, **{"X-Reference": ctx.key})


def count(name: str) -> int:
    """Adds one to a named counter of the ledger; answers the new count."""
    return int(send("POST", f"/count/{quote(name, safe='')}")["count"])


def begin(ctx: ToolContext) -> int:
    """Every rig tool says first that it was called: `Ledger.calls(key)`."""
    return count(f"call {ctx.key}")


def find_by_key(ctx: ToolContext, **_args: Any) -> Found | Absent | Undecided:
    count(f"probe {ctx.key}")
    try:
        answer = send("GET", f"/status/{quote(ctx.key)}")
    except PermanentError:
        return Absent()
    except (TransientError, OSError, RuntimeError) as error:
        return Undecided(str(error))
    return Found(answer["result"])
