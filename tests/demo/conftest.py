from collections.abc import Iterator
from typing import Any

import pytest

from runs.registry import agents, announce
from tests.rig.crew import Crew
from tests.rig.crew import crew as crew
from tests.rig.fixtures import own_ledger as own_ledger
from tests.rig.fleet import fleet as fleet


@pytest.fixture
def desk(crew: Crew, settings: Any) -> Iterator[Crew]:
    """A crew that serves the demo's agents."""
    settings.HOLDFAST_AGENTS = ("demo.agents",)
    agents.cache_clear()
    announce()
    yield crew
    agents.cache_clear()
