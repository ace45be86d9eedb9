"""The conversation of a run as the library's own messages, for whoever goes on with it elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING
from uuid import UUID

from pydantic_ai.messages import ModelMessage

from journal.entries import Entry
from runs.agents import Agent
from runs.compared import Strict
from runs.integrations.pydantic_ai.driver import JournaledDriver
from runs.state import fold

if TYPE_CHECKING:
    from runs.integrations.pydantic_ai.declared import JournaledAgent


def messages_in(agent: Agent, entries: Sequence[Entry]) -> list[ModelMessage]:
    """Of a journal, as far as it goes. The agent's code is run again for it, and does nothing. Raises Diverged if it is
    not the code that the run was made by any more."""
    slot: JournaledAgent = agent.decide  # type: ignore[assignment]
    driver = JournaledDriver(slot, agent, fold(entries[0].run_id, entries), Strict())
    try:
        return driver.messages()
    finally:
        driver.close()


def messages_of(run_id: UUID) -> list[ModelMessage]:
    """Of a run of an agent that this process knows. Raises RunNotFound, UnknownRelease, Diverged."""
    # Django's models: an agent's module is imported without them.
    from runs.errors import UnknownRelease
    from runs.queries import entries_of, find_run
    from runs.registry import agents

    run = find_run(str(run_id))
    agent = agents().get(run.release_id)
    if agent is None:
        raise UnknownRelease(run.release_id)
    return messages_in(agent, entries_of(run.id))
