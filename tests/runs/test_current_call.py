"""`current_call`: code below a tool finds the call that it is made for, and nobody else's."""

import asyncio
import dataclasses
import threading

import pytest

from runs.sdk import NoCall, ToolContext, current_call, tool
from tests.runs.test_tool_function import CTX, REFUND, look


def test_outside_of_a_call_there_is_none() -> None:
    with pytest.raises(NoCall, match="asks current_call\\(None\\)"):
        current_call()
    assert current_call(None) is None
    REFUND.perform(CTX, {"order_id": "o-1"})
    assert current_call(None) is None


def test_code_below_a_tool_that_takes_the_context_finds_its_call_too() -> None:
    @tool(effect="read")
    def outer(ctx: ToolContext) -> bool:
        return current_call() is ctx

    assert outer.perform(CTX, {}) and outer(CTX)


def test_an_async_tool_finds_its_call_where_it_is_awaited() -> None:
    assert asyncio.run(look.perform(CTX, {"order_id": "o-1"})) == "o-1 under key-1"

    async def two() -> list[str]:
        other = dataclasses.replace(CTX, key="key-2")
        return [*await asyncio.gather(look.perform(CTX, {"order_id": "a"}), look.perform(other, {"order_id": "b"}))]

    assert asyncio.run(two()) == ["a under key-1", "b under key-2"]


def test_threads_side_by_side_have_each_their_own() -> None:
    found: dict[str, str] = {}
    barrier = threading.Barrier(2)

    @tool(effect="read")
    def meet(name: str) -> None:
        barrier.wait(10)
        found[name] = current_call().key

    calls = {name: dataclasses.replace(CTX, key=f"key of {name}") for name in ("a", "b")}
    threads = [threading.Thread(target=meet.perform, args=(call, {"name": name})) for name, call in calls.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert found == {"a": "key of a", "b": "key of b"}


def test_a_call_that_raises_is_over() -> None:
    @tool(effect="read")
    def fail() -> None:
        raise KeyError(current_call().key)

    with pytest.raises(KeyError, match="key-1"):
        fail.perform(CTX, {})
    assert current_call(None) is None
