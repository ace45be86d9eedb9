from collections.abc import Iterator
from typing import Any

import pytest

from journal.payloads import payload_store
from runs.registry import agents, announce
from tests.machine.world import WORLD
from tests.rig.crew import Crew


@pytest.fixture
def machine_crew(dsn: str, settings: Any) -> Iterator[Crew]:
    """On the agents of tests.machine.agents."""
    settings.HOLDFAST_AGENTS = ("tests.machine.agents",)
    agents.cache_clear()
    payload_store.cache_clear()
    announce()
    WORLD.reset(dsn)
    crew = Crew(dsn)
    yield crew
    crew.close()
    agents.cache_clear()
