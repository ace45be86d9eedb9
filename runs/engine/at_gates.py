"""What a worker heard of gates, and which of them stop it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from uuid import UUID

from runs.agents import Agent
from runs.engine.sessions import Session
from runs.open_gates import OpenGates, names_of

PASSED_ON_AFTER = 1.0  # seconds that a worker under a gate keeps a message


class AtGates:
    """`on_gate` hears whether a gate is over this very worker: once at first, then when one comes or none is left."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.gates = OpenGates()
        self.on_gate: Callable[[bool], None] = lambda shut: None
        self._told: bool | None = None
        self._hearing = threading.Lock()
        self._stopping = threading.Event()

    def hear(self, gates: OpenGates) -> None:
        """Of the open gates; what is older than what was heard before is passed over."""
        with self._hearing:
            if gates.heard_at >= self.gates.heard_at:
                self.gates = gates
            if (shut := self.gate_here is not None) != self._told:
                self._told = shut
                self.on_gate(shut)

    def gate_for(self, agent: Agent) -> str | None:
        """The gate that stops this agent's runs, with its reason, if there is one."""
        return self.gates.over_runs_of(agent.name, agent.version)

    @property
    def gate_here(self) -> str | None:
        """The gate that stops this worker, or its region: its runs go on elsewhere."""
        return self.gates.over_place(names_of(self.session.name, self.session.pool), self.session.region)

    def pass_on(self, run_id: UUID, release_id: str) -> None:
        """Another worker may take it. Not at once: where there is none, the message only comes back."""
        self._stopping.wait(PASSED_ON_AFTER)
        self.send(run_id, release_id)

    def send(self, run_id: UUID, release_id: str) -> bool:
        raise NotImplementedError
