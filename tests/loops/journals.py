"""A journal of a model loop, written as the engine writes it, with the real clients and a scripted provider."""

import json
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from journal.encoding import decode, encode
from journal.entries import Entry, Kind
from runs.loops import asking
from runs.loops.answers import plan_of
from runs.sdk import Agent, ToolContext, tool
from runs.sdk.models import ModelLoop
from runs.state import RunState, fold

RUN = UUID("0192f000-0000-7000-8000-000000000005")
BEGAN = datetime(2026, 1, 1, 12, tzinfo=UTC)
PROMPT = "You refund orders.\nNever twice. — ü"
PROTOCOLS = ("anthropic", "openai-chat", "openai-responses")


@tool(effect="read")
def lookup(ctx: ToolContext, order: str, deep: bool = False) -> Any:
    """Look up an order."""


@tool(effect="keyed")
def refund(ctx: ToolContext, order: str, cents: float, id: str | None = None) -> Any:
    """Pay money back."""


@tool(effect="unkeyed")
def mail(ctx: ToolContext, **words: Any) -> Any:
    """Write to the customer."""


TOOLS = (lookup, refund, mail)


def loop_of(model: str = "anthropic:m", **given: Any) -> ModelLoop:
    return ModelLoop(model, prompt=PROMPT, **{"settings": {"max_tokens": 500}} | given)


def agent_of(loop: ModelLoop, *tools: Any) -> Agent:
    return Agent(name="desk", version="1", tools=tools or TOOLS, decide=loop)


class Journal:
    """`add` appends an entry; ten milliseconds later each. `state` is folded anew, from the stored form if `stored`."""

    def __init__(self, loop: ModelLoop, input: Any = "Refund o-1, please", agent: Agent | None = None) -> None:
        self.loop, self.agent = loop, agent or agent_of(loop)
        self.entries: list[Entry] = []
        self.epoch = 1
        start = {"agent": "desk", "input": input, "release": self.agent.release_id, "code": ""}
        self.add(Kind.START, start, actor="user:olga")

    def add(self, kind: str, body: dict[str, Any], step: int | None = None, actor: str = "worker") -> Entry:
        seq = len(self.entries) + 1
        at = BEGAN + timedelta(milliseconds=10 * seq)
        entry = Entry(RUN, seq, kind, 1, step, None, self.epoch, actor, at, decode(encode(body)))
        self.entries.append(entry)
        return entry

    @property
    def state(self) -> RunState:
        return fold(RUN, self.entries)

    # -- a turn -----------------------------------------------------------------------------------------------------

    def attempt(self, model: str, **told: Any) -> Entry:
        number = len(self.state.model_attempts) + 1
        return self.add(Kind.ATTEMPT, {"attempt": number, "source": "model", "model": model} | told)

    def error(self, code: str, says: str = "no", retry_after: float = 0.0) -> Entry:
        due = self.entries[-1].recorded_at.timestamp() + retry_after
        return self.add(Kind.ERROR, {"error": says, "code": code, "due": due})

    def ask(self, model: str | None = None, watch: Any = asking.unwatched) -> dict[str, Any]:
        """Asks and writes ATTEMPT and PLAN; the PLAN's body."""
        name = model or self.loop.names[0]
        state = self.state
        prepared = asking.prepare(self.agent.content, state, name, self.loop)
        told = {"digest": prepared.digest, "size": prepared.size, "client": prepared.client}
        asked = self.attempt(name, **told | ({} if state.affinity else {"affinity": str(state.root)}))
        answer = asking.ask(prepared, time.monotonic() + 30.0, watch)
        body = plan_of(self.agent, self.loop, self.state, answer)
        self.add(Kind.PLAN, {"seen": asked.seq, "asked": asked.seq} | body, actor="model")
        self.intend(body)
        return body

    def say(self, body: dict[str, Any]) -> None:
        """A PLAN that nobody was asked for."""
        asked = self.attempt(self.loop.names[0])
        self.add(Kind.PLAN, {"seen": asked.seq, "asked": asked.seq} | body, actor="model")
        self.intend(body)

    def intend(self, body: dict[str, Any]) -> None:
        step = len(self.state.slots)
        for n, move in enumerate((m for m in body["moves"] if "call" in m), step + 1):
            told = {"tool": move["call"], "args": move["args"], "id": move["id"], "key": f"k:{n}", "effect": "read"}
            self.add(Kind.TOOL_CALL, told | {"digest": "", "gate": None}, step=n)

    def settle(self, outcome: Callable[[int], dict[str, Any]]) -> None:
        """All that is open, the last first: results come in another order than the calls."""
        for step in sorted(self.state.open, reverse=True):
            entry = self.add(Kind.OBS, {"source": "worker"} | outcome(step), step=step)
            object.__setattr__(entry, "settles", step)

    def signal(self, name: str, payload: Any) -> None:
        self.add(Kind.SIGNAL, {"name": name, "payload": payload}, actor="user:olga")

    # -- for another process ----------------------------------------------------------------------------------------

    def dumped(self) -> str:
        told = [
            [e.seq, e.kind, e.step, e.epoch, e.actor, e.recorded_at.isoformat(), encode(e.body).decode()]
            for e in self.entries
        ]
        return json.dumps({"content": encode(self.agent.content).decode(), "entries": told})


def loaded(text: str) -> tuple[dict[str, Any], list[Entry]]:
    found = json.loads(text)
    entries = [
        Entry(RUN, seq, kind, 1, step, None, epoch, actor, datetime.fromisoformat(at), decode(body.encode()))
        for seq, kind, step, epoch, actor, at, body in found["entries"]
    ]
    return decode(found["content"].encode()), entries


def worked(step: int) -> dict[str, Any]:
    return {"outcome": "succeeded", "result": {"b": step, "a": [1.5, None, "ü", 1e22]}}
