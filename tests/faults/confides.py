"""An agent to whose model secrets are known: `HOLDFAST_AGENTS=tests.faults.confides`. `script(providers)` answers."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from demo.providers.asked import Asked
from demo.providers.turns import Call, Turnlike, call, think, turn
from runs.sdk import Agent, PermanentError, Secret, ToolContext, tool
from runs.sdk.models import ModelLoop
from tests.rig.providers import Providers
from tests.rig.talks import ADDRESS, KEYS
from tests.runs.secretive import CARD, SECRET

KEY = "sk-of-the-worker-alone-77"


class Order(BaseModel):
    note: str
    password: Secret[str]


@tool(effect="keyed")
def charge(ctx: ToolContext, api_key: Secret[str], amount: int = 1) -> Any:
    """Charge."""
    ctx.log.warning("charging with %s", api_key)
    return {"said": f"used {api_key} for {CARD}", "known": api_key == SECRET}


@tool(effect="unkeyed")
def breaks(ctx: ToolContext, api_key: Secret[str]) -> Any:
    """Break."""
    raise PermanentError(f"{api_key} of {CARD} was refused")


def desk(name: str, model: str, stream: bool = True) -> Agent:
    loop = ModelLoop(
        model, prompt="You charge.", base_url=ADDRESS, api_key=KEYS, stream=stream,
        context=lambda run: f"The card is {CARD}.",
    )  # fmt: skip
    return Agent(name, "1", [charge, breaks], loop, input=Order)


by_messages = desk("confides-messages", "anthropic:confides")
by_chat = desk("confides-chat", "openai-chat:confides", stream=False)
by_responses = desk("confides-responses", "openai:confides")


def confides(asked: Asked) -> Turnlike:
    wrong = call("charge", api_key=SECRET, amount=f"of {CARD}")
    unknown = [Call("pay", f'{{"card": "{CARD}"}}'), Call("charge", f'{{"api_key": "{SECRET}", "card'),
               call("update_plan", done=[], next=[f"charge {CARD}"], decided=[])]  # fmt: skip
    return [
        turn(think(f"I have {SECRET} and {CARD}."), f"Charging {CARD} with {SECRET}.", call("charge", api_key=SECRET)),
        turn(think(f"Again {SECRET}."), wrong, *unknown),
        turn(call("breaks", api_key=SECRET)),
        f"Charged {CARD}.",
    ][asked.turn]


def script(providers: Providers) -> None:
    providers.script("confides", confides)
