"""Agents with secrets, for the test beside it: `HOLDFAST_AGENTS=tests.runs.secretive`."""

from collections.abc import Generator
from typing import Annotated, Any

from pydantic import BaseModel

from runs.sdk import (
    Agent,
    Call,
    Finish,
    PermanentError,
    Retry,
    RunView,
    Secret,
    Spawn,
    ToolContext,
    TransientError,
    UnknownOutcome,
    flow,
    tool,
)  # fmt: skip
from runs.sdk.models import FunctionModel

SECRET = "sk-live-4242-tell-nobody"
NUMBER = 9_007_199_254
CARD = "4000123412341234"  # what HOLDFAST_REDACT of the tests matches
seen: list[Any] = []


class Account(BaseModel):
    name: str
    password: Secret[str]


@tool(
    effect="keyed",
    summary=lambda args: f"Charge with {args['api_key']}",
    approval=lambda args: args.get("amount", 1) > 100,
)
def charge(ctx: ToolContext, api_key: Secret[str], amount: int = 1) -> Any:
    seen.append(api_key)
    ctx.log.warning("charging with %s", api_key)
    return {"said": f"used {api_key}", api_key: [api_key]}


@tool(effect="unkeyed", retry=Retry(attempts=2, backoff=0.05))
def breaks(ctx: ToolContext, api_key: Secret[str], how: str) -> Any:
    seen.append(api_key)
    errors = {"permanent": PermanentError, "transient": TransientError, "unknown": UnknownOutcome, "bug": KeyError}
    raise errors[how](f"the key {api_key} was refused")


@tool(effect="read")
def sums(ctx: ToolContext, account: Account, pin: Annotated[Secret[int], "of the card"]) -> Any:
    seen.append((account, pin))
    return f"{account} {pin}"


@tool(effect="read")
def plain(ctx: ToolContext, text: str) -> str:
    seen.append(text)
    return f"heard {text}"


def one_call(made: Call) -> Any:
    def run_it(run: RunView) -> Generator[Any, Any, Any]:
        return (yield made)

    return run_it


with_secret = flow(name="charges", version="1", tools=[charge])(one_call(Call(charge, api_key=SECRET)))
gated = flow(name="charges-much", version="1", tools=[charge])(one_call(Call(charge, api_key=SECRET, amount=500)))
wrong_type = flow(name="charges-wrongly", version="1", tools=[charge])(one_call(Call(charge, api_key=[SECRET])))


@flow(name="breaks", version="1", tools=[breaks])
def breaking(run: RunView) -> Generator[Any, Any, Any]:
    return (yield Call(breaks, api_key=SECRET, how=run.input))


nested = flow(name="sums", version="1", tools=[sums])(
    one_call(Call(sums, account={"name": "olga", "password": SECRET}, pin=NUMBER))
)


def decide(state: RunView) -> Any:
    return Finish("ok") if state.last else Call(charge, api_key=SECRET, thought=f"with {CARD}")


decides = Agent(name="decides-secretly", version="1", tools=[charge], decide=decide)


def says(view: RunView) -> Any:
    return (Finish(CARD), {}) if view.last else (Call(charge, api_key=SECRET, thought=CARD), {"tokens": 3})


modelled = Agent(name="models-secretly", version="1", tools=[charge], decide=FunctionModel(says))


@flow(name="plain", version="1", tools=[plain])
def unsealed(run: RunView) -> Generator[Any, Any, Any]:
    said = yield Call(plain, text=f"card {CARD}")
    return {"said": said, "input": run.input}


@flow(name="hands-on", version="1", tools=[plain])
def hands_on(run: RunView) -> Generator[Any, Any, Any]:
    return (yield Call(plain, text=run.input["card"]))


@flow(name="takes-a-secret", version="1", tools=[plain], input=Account)
def takes(run: RunView) -> Generator[Any, Any, Any]:
    return (yield Call(plain, text=run.input["password"]))


@flow(name="spawns", version="1", tools=[plain])
def spawns(run: RunView) -> Generator[Any, Any, Any]:
    said = yield Spawn("takes-a-secret", {"name": "olga", "password": SECRET})
    yield Call(plain, text="afterwards")
    return said
