"""A model loop's next decision: which model is asked, with which exact request, and what its answer comes to."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from journal.entries import Draft
from runs.engine import drafts
from runs.engine.asking import Line
from runs.engine.calls import Ended, Returned
from runs.loops import policy
from runs.loops.declared import ModelLoop
from runs.loops.errors import ModelFailed
from runs.model_turns import NeedsPerson, Next, Ready
from runs.moves import some
from runs.run_view import RunView
from runs.secrets import struck_text

if TYPE_CHECKING:
    from runs.agents import Agent
    from runs.loops.asking import Prepared
    from runs.state import RunState

log = logging.getLogger("holdfast.loops")


class LoopAsking:
    """The wire side, with the providers' clients, is loaded by whoever asks first: seconds that others need not pay."""

    def __init__(self, agent: Agent, loop: ModelLoop) -> None:
        self.agent, self.loop = agent, loop
        self.timeout = loop.timeout
        self.prepared: Prepared | None = None

    def next(self, state: RunState, now: float, epoch: int) -> Next:
        unable: dict[str, str] = {}
        while True:
            following = policy.next_request(self.loop, state, now, epoch, unable)
            if isinstance(following, NeedsPerson):
                return NeedsPerson(struck_text(following.reason))
            if not isinstance(following, policy.Ask):
                return following
            told = {"model": following.model} | following.extra | some(passed_over=unable or None)
            try:
                return self._ready(state, following.model, told)
            except ModelFailed as failed:  # of this worker alone: it has no key, no address, no client
                unable[following.model] = struck_text(failed.says)

    def _ready(self, state: RunState, model: str, told: dict[str, Any]) -> Ready:
        """Raises ModelFailed."""
        if self.loop.context is not None and state.context is None:
            told["context"] = struck_text(str(self.loop.context(RunView(state))))
        # The request is of the state that the ATTEMPT leads to; folding it sets the same once more.
        state.affinity = told.get("affinity", state.affinity)
        state.context = told.get("context", state.context)
        prepared = self.prepared = self._prepared(state, model)
        return Ready(told | {"digest": prepared.digest, "size": prepared.size, "client": prepared.client})

    def _prepared(self, state: RunState, model: str) -> Prepared:
        """The request. Raises ModelFailed."""
        from runs.loops import asking

        return asking.prepare(self.agent.content, state, model, self.loop)

    def ask(self, line: Line) -> Any:
        from runs.loops import asking

        assert self.prepared is not None
        return asking.ask(self.prepared, line.deadline, line.hear, line.cancelled)

    def answer(self, how: Ended, state: RunState, seen: int, now: float) -> Draft:
        from runs.loops.answers import plan_of

        if isinstance(how, Returned):
            body = plan_of(self.agent, self.loop, state, how.value)
            return drafts.answered(seen, state.model_attempts[-1].seq, body)
        failed = self._failed(how.error)
        model = self.prepared.model if self.prepared is not None else None
        return drafts.failure(
            None, struck_text(failed.says), now + (failed.retry_after or 0.0), code=failed.code, model=model,
            status=failed.status, request_id=failed.request_id,
        )  # fmt: skip

    def _failed(self, error: BaseException) -> ModelFailed:
        from runs.loops.failures import failure_of, no_answer_within

        failed = failure_of(error)
        if failed.code == "timeout":
            failed.says = no_answer_within(self.timeout)
        return failed


def load_wire(agents: Iterable[Agent]) -> None:
    """The wire side and the clients of the models that these agents ask, in a thread of its own: seconds that the first
    run need not wait, and code of the moment at which the worker started, whatever is installed over it later."""
    loops = [agent for agent in agents if isinstance(agent.decide, ModelLoop)]
    if loops:
        threading.Thread(target=_load, args=(loops,), name="load clients", daemon=True).start()


def _load(agents: Sequence[Agent]) -> None:
    try:
        from runs.loops import answers, asking, failures, providers  # noqa: F401

        for agent in agents:
            for name in (agent.content["model"]["name"], *agent.content["model"].get("fallback", ())):
                with suppress(ModelFailed):  # whoever asks it hears why
                    providers.model_of(agent.content["model"], name, dry=True)
    except Exception:  # as of a process that ends meanwhile
        log.warning("the clients of models are not loaded yet", exc_info=True)
