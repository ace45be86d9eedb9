"""`@tool` on functions that know nothing of runs: ordinary code of a project, with its other callers."""

from __future__ import annotations

import asyncio
import copy
import dataclasses
import functools
import inspect
import queue
import time
import warnings
from collections.abc import Generator
from typing import Any
from uuid import UUID, uuid4

import pytest
from celery import shared_task
from django.db import connection

from runs.calling import under
from runs.engine.calls import CallPool
from runs.sdk import (
    Absent,
    Agent,
    Call,
    Found,
    Tool,
    ToolContext,
    current_call,
    flow,
    tool,
)
from runs.testing import REAL
from runs.testing import run as run_agent
from runs.tools import Cancelled

RUN = UUID(int=7)
CTX = ToolContext("key-1", RUN, 1, 1, time.time() + 60, Cancelled())


def refund(order_id: str, cents: int = 5, *, note: str = "") -> dict[str, Any]:
    """Gives money back."""
    call = current_call(None)
    return {"order": order_id, "cents": cents, "note": note, "key": call.key if call else None}


REFUND = tool(effect="keyed")(refund)


@tool(effect="read")
async def look(order_id: str) -> str:
    await asyncio.sleep(0)
    return f"{order_id} under {current_call().key}"


# -- called by a run, and by everybody else ---------------------------------------------------------------------------


def test_a_run_calls_it_with_its_arguments_alone() -> None:
    done = REFUND.perform(CTX, {"order_id": "o-1", "note": "late"})
    assert done == {"order": "o-1", "cents": 5, "note": "late", "key": "key-1"}


def test_other_callers_call_it_as_before() -> None:
    assert REFUND("o-1", 7) == refund("o-1", 7) == {"order": "o-1", "cents": 7, "note": "", "key": None}
    assert REFUND("o-1", cents=7, note="x")["note"] == "x"
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'order_id'"):
        REFUND()


def test_it_looks_like_its_function() -> None:
    words = ("__name__", "__doc__", "__module__")
    assert [getattr(REFUND, word) for word in words] == ["refund", "Gives money back.", __name__]
    assert inspect.signature(REFUND) == inspect.signature(refund)
    assert inspect.iscoroutinefunction(look) and not inspect.iscoroutinefunction(REFUND)


def test_what_else_its_function_has_is_its_own() -> None:
    remembered = tool(effect="read")(functools.cache(lambda order_id: order_id.upper()))
    assert remembered("o-1") == "O-1"
    assert remembered.cache_info().misses == 1  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match="'function' object has no attribute 'contrakt'"):
        REFUND.contrakt  # type: ignore[attr-defined]  # noqa: B018
    assert copy.copy(REFUND)("o-2")["order"] == "o-2"


def test_its_release_says_what_it_takes() -> None:
    contract = REFUND.contract
    assert contract["doc"] == "Gives money back."
    assert contract["parameters"]["properties"] == {
        "order_id": {"title": "Order Id", "type": "string"},
        "cents": {"default": 5, "title": "Cents", "type": "integer"},
        "note": {"default": "", "title": "Note", "type": "string"},
    }
    assert REFUND.faults({"cents": "many"}) == [
        "order_id: Field required",
        "cents: Input should be a valid integer, unable to parse string as an integer",
    ]


def test_a_function_without_parameters_is_a_tool() -> None:
    ping = tool(effect="read")(lambda: "pong")
    assert ping.perform(CTX, {}) == ping() == "pong"
    assert ping.faults({"x": 1}) == ["x: Extra inputs are not permitted"]


def test_the_context_is_known_by_its_name_or_its_annotation() -> None:
    def by_name(ctx, x: int) -> Any:  # type: ignore[no-untyped-def]
        return ctx.key, x

    def by_annotation(call: ToolContext, x: int) -> Any:
        return call.key, x

    def neither(context: str, x: int) -> Any:
        return context, x

    def by_name_whatever_its_type(ctx: Any, x: int) -> Any:
        return ctx.key, x

    for function in (by_name, by_annotation, by_name_whatever_its_type):
        made = tool(effect="read")(function)
        assert made.perform(CTX, {"x": 1}) == made(CTX, x=1) == made(CTX, 1) == ("key-1", 1)
        assert list(made.contract["parameters"]["properties"]) == ["x"]
    assert tool(effect="read")(neither).perform(CTX, {"context": "c", "x": 1}) == ("c", 1)


# -- callables of other kinds -----------------------------------------------------------------------------------------


class Shop:
    def __init__(self, name: str) -> None:
        self.name = name

    @tool(effect="keyed")
    def sell(self, item: str, count: int = 1) -> str:
        return f"{self.name} sells {count} {item}"

    @tool(effect="read")
    @classmethod
    def kind(cls, item: str) -> str:
        return f"{cls.__name__} of {item}"

    @tool(effect="read")
    @staticmethod
    def tax(cents: int) -> int:
        return cents // 5

    @tool(effect="read")
    def audit(self, ctx: ToolContext, item: str) -> str:
        return f"{self.name} {ctx.key} {item}"

    def plain(self, item: str) -> str:
        return f"{self.name} has {item}"


def test_methods_are_tools_of_their_object() -> None:
    shop = Shop("Ada's")
    assert shop.sell("tea", 2) == shop.sell.perform(CTX, {"item": "tea", "count": 2}) == "Ada's sells 2 tea"
    assert Shop.kind("tea") == shop.kind.perform(CTX, {"item": "tea"}) == "Shop of tea"
    assert Shop.tax(10) == shop.tax.perform(CTX, {"cents": 10}) == 2
    assert shop.audit.perform(CTX, {"item": "tea"}) == shop.audit(CTX, "tea") == "Ada's key-1 tea"
    assert tool(effect="read")(shop.plain).perform(CTX, {"item": "tea"}) == "Ada's has tea"
    assert list(shop.sell.contract["parameters"]["properties"]) == ["item", "count"]
    assert Agent(name="a", version="1", tools=[shop.sell], decide=lambda state: None).code_digest


def test_a_method_without_its_object_says_so() -> None:
    assert Shop.sell(Shop("Ada's"), "tea") == "Ada's sells 1 tea"
    with pytest.raises(ValueError, match=r"tool sell: it is a method: give the agent that of an object"):
        Shop.sell.contract  # noqa: B018


def test_a_tool_that_a_class_merely_holds_is_not_bound() -> None:
    class Holder:
        held = REFUND
        other = tool(effect="read")(lambda ctx, x: (ctx.key, x))

    assert Holder().held is REFUND
    assert Holder().other.perform(CTX, {"x": 1}) == ("key-1", 1)


def test_partials_bind_what_nobody_gives_anew() -> None:
    bound = tool(effect="keyed")(functools.partial(refund, note="by the robot"))
    assert bound.name == "refund" and bound.contract["doc"] == "Gives money back."
    assert bound.perform(CTX, {"order_id": "o-1"})["note"] == "by the robot"
    assert bound.faults({"order_id": "o-1", "note": "mine"}) == ["note: Extra inputs are not permitted"]
    assert tool(effect="keyed")(functools.partial(refund, "o-9")).perform(CTX, {})["order"] == "o-9"
    assert Agent(name="a", version="1", tools=[bound], decide=lambda state: None).code_digest


def test_objects_that_can_be_called_are_tools() -> None:
    class Counter:
        """Counts."""

        def __call__(self, step: int) -> int:
            return step + 1

    counts = tool(effect="read", name="count")(Counter())
    assert counts.perform(CTX, {"step": 1}) == counts(1) == 2
    assert counts.contract["parameters"]["properties"] == {"step": {"title": "Step", "type": "integer"}}
    assert tool(effect="read")(Counter()).name == "Counter"


def test_a_task_of_celery_is_a_tool_and_stays_a_task() -> None:
    @tool(effect="keyed")
    @shared_task(name="tests.charge")
    def charge(order_id: str, cents: int) -> str:
        """Charges."""
        return f"{order_id} {cents} {current_call(None) is not None}"

    @shared_task(name="tests.bound", bind=True)
    def bound(self: Any, order_id: str) -> str:
        return f"{order_id} {self.name}"

    assert charge.perform(CTX, {"order_id": "o-1", "cents": 1}) == "o-1 1 True"
    assert charge("o-1", 1) == "o-1 1 False"
    assert charge.apply(("o-1", 1)).get() == "o-1 1 False"  # type: ignore[attr-defined]
    assert charge.name == "charge" and charge.contract["doc"] == "Charges."
    assert list(charge.contract["parameters"]["properties"]) == ["order_id", "cents"]
    assert tool(effect="keyed", name="b")(bound).perform(CTX, {"order_id": "o-1"}) == "o-1 tests.bound"
    assert Agent(name="a", version="1", tools=[charge], decide=lambda state: None).code_digest


def test_a_tool_may_be_made_a_task() -> None:
    task = shared_task(name="tests.refund")(REFUND)
    assert task.apply(("o-1",), {"cents": 3}).get()["cents"] == 3


def test_one_function_may_be_several_tools() -> None:
    asked = tool(effect="keyed", name="refund-asked", approval=True)(REFUND)
    assert asked.perform(CTX, {"order_id": "o-1"})["key"] == "key-1"
    assert asked.function is refund


def test_names_that_pydantic_knows_are_arguments_like_others() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")

        @tool(effect="read")
        def export(
            json: str, copy: int, call: int = 0, function: int = 0, _private: bool = False, model_id: str = "m", *,
            schema: str = "s",
        ) -> Any:  # fmt: skip
            return json, copy, call + function, _private, model_id, schema

        rest = ["call", "function", "_private", "model_id", "schema"]
        args = {"json": "{}", "copy": "2", "_private": True, "call": 1, "function": 2}
        assert export.faults(args) == []
        assert export.faults({"json": "{}"}) == ["copy: Field required"]
        assert export.perform(CTX, export.typed(args)) == ("{}", 2, 3, True, "m", "s")
        assert list(export.contract["parameters"]["properties"]) == ["json", "copy", *rest]
        assert export.contract["parameters"]["properties"]["json"] == {"title": "Json", "type": "string"}
        assert export.takes_alike(args, args | {"copy": 2, "model_id": "m"})


def test_parameters_without_a_name_get_theirs_by_place() -> None:
    @tool(effect="read")
    def place(a: int, b: int = 2, /, c: int = 3, **more: int) -> Any:
        return a, b, c, more

    assert place.perform(CTX, {"a": 1}) == (1, 2, 3, {})
    assert place.perform(CTX, {"a": 1, "c": 5, "d": 6, "b": 7}) == (1, 7, 5, {"d": 6})
    assert place.typed({"a": "1", "d": 4}) == {"a": 1, "d": 4}


def test_an_annotation_that_cannot_be_read_says_what_to_do() -> None:
    def strange(order: NotImportedHere) -> None:  # type: ignore[name-defined]  # noqa: F821
        pass

    class Row:
        """Pydantic knows nothing of it."""

    def save(row: Row) -> None:
        pass

    save.__annotations__["row"] = Row
    with pytest.raises(ValueError, match=r"tool save: an argument is of a type that JSON has no words for .*Row"):
        tool(effect="keyed")(save).contract  # noqa: B018
    with pytest.raises(ValueError, match=r"tool strange: an annotation cannot be read .*NotImportedHere.* at run time"):
        tool(effect="read")(strange).contract  # noqa: B018


# -- probes -----------------------------------------------------------------------------------------------------------


def test_a_probe_may_take_the_arguments_alone() -> None:
    def find(order_id: str, **_others: Any) -> Found | Absent:
        return Found({"order": order_id, "key": current_call().key})

    def by_name(**args: Any) -> Found | Absent:
        return Found(args)

    def with_context(anything: Any, **_args: Any) -> Found | Absent:
        return Found(anything.key)

    def ask(probe: Any) -> Any:
        return tool(effect="probed", probe=probe)(refund).ask(CTX, {"order_id": "o-1"}).result

    assert ask(find) == {"order": "o-1", "key": "key-1"}
    assert ask(by_name) == {"order_id": "o-1"}
    assert ask(with_context) == "key-1"


# -- in a run ---------------------------------------------------------------------------------------------------------


@flow(name="give-back", version="1", tools=[REFUND, look, Shop("Ada's").sell])
def give_back(run: Any) -> Generator[Any, Any, Any]:
    seen = yield Call("look", order_id="o-1")
    done = yield Call(REFUND, order_id="o-1", cents=3)
    return [seen, done, (yield Call("sell", item="tea"))]


def test_runs_in_memory_call_the_functions() -> None:
    run = run_agent(give_back, tools=REAL)
    run_id = run.calls[0].key.partition(":")[0]
    assert run.result == [
        f"o-1 under {run_id}:1",
        {"order": "o-1", "cents": 3, "note": "", "key": f"{run_id}:2"},
        "Ada's sells 1 tea",
    ]


def test_fakes_stand_for_them_and_know_the_call() -> None:
    fakes = {"look": "seen", "refund": lambda order_id, cents: current_call().step, "sell": lambda ctx, item: ctx.step}
    assert run_agent(give_back, tools=fakes).result == ["seen", 2, 3]


@pytest.mark.django_db(transaction=True)
def test_a_call_leaves_no_connection_of_django_behind() -> None:
    seen: queue.SimpleQueue[tuple[Any, Any, Any]] = queue.SimpleQueue()

    class Asking:
        def run(self) -> Any:
            before = connection.connection
            with connection.cursor() as cursor:
                cursor.execute("SELECT 1")
            return before, connection.connection

        def ended(self, how: Any) -> None:
            seen.put((*how.value, connection.connection))

    pool = CallPool(most=1)
    for _ in range(2):
        pool.start(Asking())
        before, during, after = seen.get(timeout=30)
        assert before is None and during is not None and after is None


def test_a_test_sets_the_call_itself() -> None:
    with under(dataclasses.replace(CTX, key=str(uuid4()))):
        assert REFUND("o-1")["key"] == current_call().key
    assert isinstance(REFUND, Tool)
