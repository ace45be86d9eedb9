"""What an agent's author says of its model loop. Light: no provider's client is loaded before one is asked."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pydantic import PydanticSchemaGenerationError, PydanticUserError, TypeAdapter

from journal.encoding import canonical

if TYPE_CHECKING:
    from runs.run_view import RunView

UPDATE_PLAN, FINAL_RESULT = "update_plan", "final_result"
RESERVED = (UPDATE_PLAN, FINAL_RESULT)
WRAPPED = "result"  # the one field of `final_result` where the output is no object

REFUSED_SETTINGS = {
    "openai_previous_response_id": "the conversation is kept in the journal, not at the provider",
    "openai_conversation_id": "the conversation is kept in the journal, not at the provider",
    "openai_background": "a request that outlives its attempt cannot be accounted for",
    "openai_store": "nothing is kept at the provider: it is always off",
    "openai_transport": "each attempt is one HTTP request",
    "openai_native_tools": "tools that the provider runs are declared with native=",
    "anthropic_container": "a container keeps state at the provider",
    "anthropic_context_management": "what is left out is a decision of the journal: compact_at=",
    "openai_context_management": "what is left out is a decision of the journal: compact_at=",
    "openai_truncation": "what is left out is a decision of the journal: compact_at=",
    "max_retries": "each attempt is journaled: attempts= says how many are made",
    "request_timeout": "timeout= says it",
    "timeout": "timeout= says it",
    "first_event_timeout": "timeout= says it",
    "tool_choice": "the loop says which tools there are",
}
REFUSED_IN_BODY = frozenset({
    "previous_response_id", "conversation", "conversation_id", "thread", "thread_id", "assistant_id", "store",
    "background", "container", "context_management", "mcp_servers", "tools", "messages", "input", "stream", "model",
    "truncation", "tool_choice", "functions", "function_call", "parallel_tool_calls", "web_search_options", "plugins",
    "prompt", "instructions", "system", "n",
})  # fmt: skip
PROVIDER = re.compile(r"[a-z0-9][a-z0-9_./-]*:\S+")
VARIABLE = re.compile(r"\$[A-Za-z_][A-Za-z0-9_]*")
ByProvider = str | Mapping[str, str]


@dataclass(frozen=True, eq=False)
class ModelLoop:
    """The model slot filled by a conversation with a language model. Its answers are journaled before use.

    `model`: "provider:snapshot", or a pydantic-ai `Model` object for tests. `output`: `str`, or a type that the final
    answer is validated against. `fallback`: models asked in this order when one before them does not answer.
    `context(run)`: a part of the prompt made at run time, once. `native`: tools that the provider runs inside a
    request, each declared "read". `base_url`, `api_key`: a text, or texts by provider; "$NAME" is read from the
    environment when the model is asked, and a key is only given so. `timeout`: seconds for a whole request.
    `retries`: corrections in a row, `attempts`: requests in a row without an answer, before a person looks.
    `compact_at`: input tokens above which older turns are shown shorter; None: only when the provider refuses more.
    """

    model: Any
    prompt: str = ""
    output: Any = str
    settings: Mapping[str, Any] | None = None
    fallback: Sequence[Any] = ()
    context: Callable[[RunView], str] | None = None
    native: Mapping[str, str] | None = None
    base_url: ByProvider | None = None
    api_key: ByProvider | None = None
    timeout: float = 120.0
    stream: bool = True
    retries: int = 3
    attempts: int = 10
    compact_at: int | None = 150_000

    def __post_init__(self) -> None:
        fault = next(self._faults(), None)
        if fault is not None:
            raise ValueError(f"ModelLoop: {fault}")
        # A type without a schema is told of here, not when it is first asked for.
        if '"writeOnly": true' in json.dumps(self.output_schema):
            raise ValueError("ModelLoop: output= has a Secret in it, and a result is shown to people: leave it out")

    def _faults(self) -> Iterator[str]:
        if isinstance(self.fallback, str):
            yield f"fallback= is a list of models: ({self.fallback!r},)"
            return
        for model in (self.model, *self.fallback):
            if isinstance(model, str) and not PROVIDER.fullmatch(model):
                yield f"model {model!r} needs its provider in front: 'anthropic:{model}', 'openai:{model}' …"
            elif not isinstance(model, str) and not is_model(model):
                yield f"a model is named as 'provider:snapshot', not given as {type(model).__name__}"
        if len(set(self.names)) != len(self.names):
            yield "fallback= names a model twice"
        if not isinstance(self.prompt, str):
            yield f"prompt= is a text, not {type(self.prompt).__name__}"
        if self.context is not None and not callable(self.context):
            yield "context= is a function of the run that returns a text"
        if inspect.isroutine(self.output):
            yield f"output= takes a type that has a JSON schema, not the function {self.output.__name__}"
        yield from _wrong_settings(self.settings)
        yield from _wrong_native(self.native)
        yield from self._wrong_addresses()
        yield from self._wrong_numbers()

    def _wrong_addresses(self) -> Iterator[str]:
        for word, given in (("base_url", self.base_url), ("api_key", self.api_key)):
            texts = list(given.values()) if isinstance(given, Mapping) else [] if given is None else [given]
            if not all(isinstance(text, str) and text for text in texts):
                yield f"{word}= is a text, or texts by provider"
            elif word == "base_url" and not all(text.startswith(("$", "http://", "https://")) for text in texts):
                yield "base_url= begins with http:// or https://, or names a variable of the environment, as '$NAME'"
            elif isinstance(given, Mapping) and (astray := self._astray(given)):
                yield f"{word}= {astray}"
            elif word == "base_url" and any("@" in text.split("//")[-1].split("/")[0] for text in texts):
                yield "base_url= has a password in it, which would be part of the release: name a variable, as '$NAME'"
            elif word == "api_key" and not all(VARIABLE.fullmatch(text) for text in texts):
                yield "api_key= names a variable of the environment, as '$NAME': a key is never part of a release"
        providers = {name.partition(":")[0].split("-")[0] for name in self.names}
        if isinstance(self.api_key, str) and self.base_url is None and len(providers) > 1:
            yield "api_key= is for one provider, and fallback= names another: give keys by provider"

    def _astray(self, given: Mapping[str, str]) -> str:
        """What looks like a slip: one is given for a provider that is not asked, and none for one that is. Addresses of
        more providers than are asked are nothing wrong by themselves."""
        known = [{name.partition(":")[0], name.partition(":")[0].split("-")[0]} for name in self.names]
        lost = sorted(set(given) - set().union(*known))
        bare = [name for name, either in zip(self.names, known, strict=True) if not either & set(given)]
        return f"is given for {lost[0]!r}, which is not asked, and not for {bare[0]}" if lost and bare else ""

    def _wrong_numbers(self) -> Iterator[str]:
        if isinstance(self.timeout, bool) or not isinstance(self.timeout, (int, float)) or not 0 < self.timeout <= 3600:
            yield "timeout= is a number of seconds, up to an hour"
        for word, least in (("retries", 0), ("attempts", 1)):
            if type(given := getattr(self, word)) is not int or given < least:
                yield f"{word}= is a whole number from {least}"
        if self.compact_at is not None and (type(self.compact_at) is not int or self.compact_at < 1_000):
            yield "compact_at= is a number of input tokens, at least 1000, or None"
        if not isinstance(self.stream, bool):
            yield "stream= is True or False"

    # -- what is asked ----------------------------------------------------------------------------------------------

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The models in the order in which they are asked."""
        return tuple(name_of(model) for model in (self.model, *self.fallback))

    def object_of(self, name: str) -> Any:
        """The `Model` object that was given in place of a name, or None."""
        given = zip(self.names, (self.model, *self.fallback), strict=True)
        return next((model for known, model in given if known == name and not isinstance(model, str)), None)

    @cached_property
    def content(self) -> dict[str, Any]:
        """What a release says of it; what is as by default is left out, except what bounds a request."""
        said: dict[str, Any] = {"name": self.names[0], "timeout": self.timeout, "stream": self.stream}
        given = {
            "prompt": self.prompt, "settings": _plain(self.settings), "output": self.output_schema,
            "fallback": list(self.names[1:]), "native": _plain(self.native), "base_url": _plain(self.base_url),
            "api_key": _plain(self.api_key), "context": self.context is not None,
        }  # fmt: skip
        bounds = {"retries": self.retries, "attempts": self.attempts, "compact_at": self.compact_at}
        return said | {name: value for name, value in given.items() if value} | bounds

    @property
    def functions(self) -> list[Callable[..., Any]]:
        """The author's code that it runs: what makes the context, and the type that judges the result."""
        own = isinstance(self.output, type) and self.output.__module__ != "builtins"
        return [*([self.context] if self.context is not None else []), *([self.output] if own else [])]

    # -- the final answer -------------------------------------------------------------------------------------------

    @cached_property
    def _adapter(self) -> TypeAdapter[Any] | None:
        return None if self.output is str else TypeAdapter(self.output)

    @cached_property
    def output_schema(self) -> dict[str, Any] | None:
        """The JSON schema of the run's result; None: it is the text of the last answer."""
        try:
            return None if self._adapter is None else self._adapter.json_schema()
        except (PydanticSchemaGenerationError, PydanticUserError, TypeError) as error:
            raise ValueError(f"ModelLoop: output= takes a type that has a JSON schema, not {self.output!r}") from error

    def validate_output(self, value: Any) -> Any:
        """The result in JSON's own types. Raises ValueError (pydantic's, where it says more) for what is none."""
        if self._adapter is None:
            if not isinstance(value, str):
                raise ValueError("the result is a text")
            return value
        return self._adapter.dump_python(self._adapter.validate_python(value), mode="json")


def is_model(given: Any) -> bool:
    """Whether it is a pydantic-ai `Model`, judged without loading that library."""
    return isinstance(getattr(given, "model_name", None), str) and callable(getattr(given, "request", None))


def name_of(model: Any) -> str:
    return model if isinstance(model, str) else f"{model.system}:{model.model_name}"


def is_wrapped(schema: Mapping[str, Any]) -> bool:
    """Whether a result of this schema is the one field of an object: a call's arguments are always an object."""
    target = schema
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference.startswith("#/$defs/"):
        target = schema.get("$defs", {}).get(reference.removeprefix("#/$defs/"), {})
    return target.get("type") != "object"


def _plain(given: Any) -> Any:
    return dict(given) if isinstance(given, Mapping) else given


def _wrong_settings(settings: Any) -> Iterator[str]:
    if settings is None:
        return
    if not isinstance(settings, Mapping) or not _is_json(dict(settings)):
        yield "settings= is a dict of what JSON knows"
        return
    for name in settings:
        if name in REFUSED_SETTINGS:
            yield f"settings= may not have {name!r}: {REFUSED_SETTINGS[name]}"
    for word in ("extra_body", "extra_headers"):
        inner = settings.get(word, {})
        if not isinstance(inner, Mapping):
            yield f"settings[{word!r}] is a dict"
        elif word == "extra_body" and (bad := sorted(REFUSED_IN_BODY & set(inner))):
            yield f"settings['extra_body'] may not have {', '.join(bad)}: requests are made from the journal alone"
        elif word == "extra_headers" and (bad := [n for n in inner if n.lower() in ("authorization", "x-api-key")]):
            yield f"settings['extra_headers'] may not have {bad[0]}: a key is never part of a release, use api_key="


def _wrong_native(native: Any) -> Iterator[str]:
    if native is None:
        return
    if not isinstance(native, Mapping):
        yield "native= is a dict: {'web_search': 'read'}"
        return
    for name, effect in native.items():
        if effect != "read":
            yield (
                f"native={{{name!r}: {effect!r}}}: a tool that the provider runs cannot be journaled before its effect,"
                " so only one that reads is allowed, declared as 'read'"
            )
        elif name not in NATIVE:
            yield f"native= knows {', '.join(NATIVE)}, not {name!r}"


NATIVE = ("web_search", "web_fetch", "code_execution", "x_search")


def _is_json(value: Any) -> bool:
    """Whether JSON gives it back as it is: a release is found again by the digest of its content."""
    try:
        return canonical(json.loads(json.dumps(value, allow_nan=False))) == canonical(value)
    except (TypeError, ValueError):
        return False
