"""What a callable of any kind takes: functions, methods, partials, objects with `__call__`, tasks of Celery."""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, create_model
from pydantic_core import to_jsonable_python

from runs.calling import ToolContext

Parameter = inspect.Parameter
GATHERING = (Parameter.VAR_KEYWORD, Parameter.VAR_POSITIONAL)


def plain_of(function: Any) -> Any:
    """The function that somebody wrote, with its name, source, annotations and text."""
    while True:
        if isinstance(function, (staticmethod, classmethod)):
            function = function.__func__
        elif isinstance(function, functools.partial):
            function = function.func
        elif hasattr(function, "__wrapped__"):
            function = function.__wrapped__
        elif inspect.isroutine(function) or inspect.isclass(function) or not callable(function):
            return function
        else:
            function = type(function).__call__


def name_of(function: Any) -> str:
    """What it is called: an object with `__call__` after its class."""
    if isinstance(function, functools.partial):
        return name_of(function.func)
    return str(getattr(function, "__name__", None) or type(function).__name__)


def parameters_of(function: Any) -> list[Parameter]:
    """All that may be given to it. What a partial binds by name is bound: nobody may give it anew."""
    bound = set(function.keywords) if isinstance(function, functools.partial) else set()
    whole = function.__func__ if isinstance(function, (staticmethod, classmethod)) else function
    return [p for p in inspect.signature(whole).parameters.values() if p.name not in bound]


def is_context(parameter: Parameter, function: Any) -> bool:
    """Whether it is for the ToolContext: by its name, `ctx`, or by its annotation."""
    if parameter.kind not in (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD):
        return False
    hint = parameter.annotation
    if parameter.name == "ctx":
        return True
    if isinstance(hint, str):  # annotations of the future: of this one alone, since others may not be known yet
        if hint.rpartition(".")[2] == ToolContext.__name__:
            return True
        hint = getattr(plain_of(function), "__globals__", {}).get(hint)
    return isinstance(hint, type) and issubclass(hint, ToolContext)


def hints_of(function: Any) -> dict[str, Any]:
    """Its annotations, resolved. Raises NameError where one names what its module does not know at run time."""
    plain = plain_of(function)
    return typing.get_type_hints(plain, include_extras=True) if inspect.isroutine(plain) else {}


def model_of(name: str, parameters: list[Parameter], hints: Mapping[str, Any]) -> tuple[Any, dict[str, str]]:
    """A pydantic model of the arguments, and its field for each parameter."""
    fields: dict[str, Any] = {}
    field_of: dict[str, str] = {}
    for number, parameter in enumerate(parameters):
        if parameter.kind in GATHERING:
            continue
        field_of[parameter.name] = field = field_name(parameter.name, number)
        default = ... if parameter.default is parameter.empty else parameter.default
        hint = hints.get(parameter.name, Any)
        if field != parameter.name:
            default = Field(default, alias=parameter.name)
        fields[field] = (hint, default)
    anything = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)
    config = ConfigDict(extra="allow" if anything else "forbid", arbitrary_types_allowed=True)
    return create_model(name, __config__=config, **fields), field_of


def field_name(name: str, number: int) -> str:
    """Its own name, unless pydantic means something else by it."""
    taken = name.startswith(("_", "model_validate", "model_dump")) or hasattr(BaseModel, name)
    return f"argument_{number}" if taken else name


def split(args: Mapping[str, Any], parameters: list[Parameter]) -> tuple[list[Any], dict[str, Any]]:
    """The arguments by place, of parameters that take no name, and by name."""
    named = dict(args)
    by_place: list[Any] = []
    last = max((n for n, p in enumerate(parameters) if p.kind is p.POSITIONAL_ONLY and p.name in args), default=-1)
    for parameter in parameters[: last + 1]:
        by_place.append(named.pop(parameter.name, parameter.default))
    return by_place, named


def plain_values(value: Any) -> Any:
    """In JSON's own types and Decimals, which a text could not be compared with."""
    if isinstance(value, dict):
        return {name: plain_values(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain_values(item) for item in value]
    return value if isinstance(value, Decimal) else to_jsonable_python(value)
