"""Model objects by name: live ones, which send, and dry ones, which tell what would be sent."""

from __future__ import annotations

import hashlib
import inspect
import os
import re
import threading
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from importlib import metadata
from typing import Any, cast

import httpx2
from pydantic_ai.models import Model, infer_model
from pydantic_ai.providers import infer_provider_class
from pydantic_ai.providers.gateway import gateway_provider
from pydantic_ai.settings import ModelSettings

from runs.loops.errors import ModelFailed
from runs.loops.thread import at_end

UNSET = re.compile(r"[Ss]et the `(\w+)` environment variable")  # in the library's words
NOWHERE = "http://unset.invalid"  # in place of an address whose variable is not set here
CONNECT_SECONDS = 10.0
OUR_CLIENTS = ("httpx2.", "AsyncHTTPClient", "OpenAIHTTPClient")  # as providers annotate `http_client`
OPENAI = ("openai", "azure", "meta")  # of the providers that could keep a conversation
CACHES = ("cache", "anthropic_cache", "anthropic_cache_messages", "anthropic_cache_instructions")


class Captured(Exception):
    """The request as it would go out, raised in place of sending it."""

    def __init__(self, request: httpx2.Request) -> None:
        super().__init__("captured")
        self.request = request


class Differs(Exception):
    """What was about to be sent is not what the journal says: nothing was sent."""


class Dry(httpx2.AsyncBaseTransport):
    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        await request.aread()
        raise Captured(request)


@dataclass(slots=True)
class Heard:
    """What HTTP says of one request. `digest`: what it has to be; None: nobody said."""

    digest: str | None = None
    status: int | None = None
    request_id: str | None = None
    seen: bool = field(default=False)


heard: ContextVar[Heard | None] = ContextVar("heard", default=None)


async def _check(request: httpx2.Request) -> None:
    """Just before it is sent: the body is the one whose digest was committed."""
    now = heard.get()
    if now is not None and now.digest is not None and not now.seen:
        if hashlib.sha256(request.content).hexdigest() != now.digest:
            raise Differs("the request is not the one that was journaled")
        now.seen = True


async def _note(response: httpx2.Response) -> None:
    now = heard.get()
    if now is not None:
        now.status = response.status_code
        now.request_id = response.headers.get("x-request-id") or response.headers.get("request-id")


_made: dict[tuple[Any, ...], Model[Any]] = {}
_lock = threading.Lock()


def _forget() -> None:
    """In a forked child: the lock may have been held by another thread."""
    global _lock
    _lock = threading.Lock()
    _made.clear()


os.register_at_fork(after_in_child=_forget)


def model_of(content: Mapping[str, Any], name: str, *, dry: bool = False) -> Model[Any]:
    """`content`: the release's of the model. One object per process, and address and key. Raises ModelFailed."""
    url, key = address_of(content, name, dry=dry), None if dry else key_of(content, name)
    known = (name, url, key, dry, _surroundings())  # what is not given, a client reads for itself
    with _lock:
        if known not in _made:
            try:
                _made[known] = infer_model(name, lambda provider: _provider(provider, url, "none" if dry else key, dry))
            except httpx2.InvalidURL as error:
                raise ModelFailed("rejected", f"base_url is no address: {error}") from error
            except Exception as error:
                if (missing := UNSET.search(str(error))) is not None:
                    says = f"{missing[1]} is not set in the worker's environment"
                    raise ModelFailed("authentication", says) from error
                raise ModelFailed("not_found", str(error)) from error
        return _made[known]


def _surroundings() -> tuple[tuple[str, str], ...]:
    return tuple(sorted((n, v) for n, v in os.environ.items() if n.endswith(("_BASE_URL", "_API_KEY"))))


def _provider(name: str, url: str | None, key: str | None, dry: bool) -> Any:
    make: Any = infer_provider_class(name)
    known = inspect.signature(make).parameters
    given: dict[str, Any] = {"base_url": url, "api_key": key}
    if takes_client(name):
        given["http_client"] = _client(dry)
    if name.startswith("gateway/"):
        del given["base_url"]
        return gateway_provider(name.removeprefix("gateway/"), **{n: v for n, v in given.items() if v is not None})
    return make(**{word: value for word, value in given.items() if value is not None and word in known})


def takes_client(name: str) -> bool:
    """Whether the provider's requests go through a client of ours, so that they can be stopped before they are sent. Of
    any other, what would be sent is not known. `name`: of the provider, or of a model of it."""
    taken = inspect.signature(cast(Any, infer_provider_class(name.partition(":")[0]))).parameters.get("http_client")
    return taken is not None and any(word in str(taken.annotation) for word in OUR_CLIENTS)


def why_unknown(name: str) -> str:
    """Why nothing can be asked of such a model here, whatever is set; empty where it can. `name`: with its provider."""
    provider = name.partition(":")[0]
    try:
        infer_provider_class(provider)
    except ImportError:
        return f"the library for {provider!r} is not installed (an extra of pydantic-ai-slim)"
    except ValueError:
        return f"no provider is called {provider!r}" if ":" in name else "it names no provider, as openai:… does"
    return ""


def _client(dry: bool) -> httpx2.AsyncClient:
    if dry:
        return httpx2.AsyncClient(transport=Dry())
    client = httpx2.AsyncClient(
        timeout=httpx2.Timeout(None, connect=CONNECT_SECONDS),  # the whole request has its deadline
        limits=httpx2.Limits(max_connections=512, max_keepalive_connections=64),
        event_hooks={"request": [_check], "response": [_note]},
    )
    at_end(client.aclose)
    return client


def address_of(content: Mapping[str, Any], name: str, *, dry: bool = False) -> str | None:
    """Raises ModelFailed if its variable is not set: the provider's own address would be somebody else's."""
    given = _for(content.get("base_url"), name)
    found = _read(given)
    if given is not None and found is None:
        if dry:
            return NOWHERE
        raise ModelFailed("rejected", f"base_url names {given}, which is not set in the worker's environment")
    return found


def key_of(content: Mapping[str, Any], name: str) -> str | None:
    given = _for(content.get("api_key"), name)
    found = _read(given)
    if given is not None and not found:
        raise ModelFailed("authentication", f"api_key names {given}, which is not set in the worker's environment")
    return found


def _for(given: str | Mapping[str, str] | None, name: str) -> str | None:
    if not isinstance(given, Mapping):
        return given
    provider = name.partition(":")[0]
    return given.get(provider, given.get(provider.split("-")[0]))


def _read(given: str | None) -> str | None:
    return os.environ.get(given[1:]) if given is not None and given.startswith("$") else given


def given_address(content: Mapping[str, Any], name: str) -> str | None:
    """As the release says it."""
    return _for(content.get("base_url"), name)


def settings_of(content: Mapping[str, Any], name: str, affinity: str) -> ModelSettings:
    """The author's settings under those that make a request whole, accountable and alone."""
    provider = name.partition(":")[0].removeprefix("gateway/")
    settings: dict[str, Any] = {"parallel_tool_calls": True} | dict(content.get("settings") or {})
    if provider.startswith(OPENAI):
        settings.setdefault("openai_prompt_cache_key", affinity)
        settings |= {"openai_store": False, "openai_transport": "http"}
    if provider.startswith("anthropic") and not any(word in settings for word in CACHES):
        settings |= {"anthropic_cache_instructions": True, "anthropic_cache_messages": True}
    return cast(ModelSettings, settings | {"max_retries": 0, "request_timeout": content["timeout"]})


@cache  # the metadata is read from disk each time
def version(package: str) -> str:
    return metadata.version(package)


def clients_of(model: Model[Any]) -> str:
    """The packages that the bytes of a request depend on, with their versions."""
    names = {part for kind in type(model).__mro__ for part in kind.__module__.split(".")[2:3]}
    packages = ["pydantic-ai-slim", *(name for name in ("anthropic", "openai") if name in names)]
    return ", ".join(f"{package} {version(package)}" for package in packages)


def tells_its_end(model: Model[Any]) -> bool:
    """Whether a whole answer of it carries the provider's own word that it is whole."""
    return clients_of(model) != clients_of_none()


def clients_of_none() -> str:
    return f"pydantic-ai-slim {version('pydantic-ai-slim')}"
