from collections.abc import Iterator
from typing import Any

import pytest

from journal.payloads import payload_store
from runs.registry import agents, announce
from tests.rig.crew import Crew
from tests.rig.fixtures import ledger as ledger
from tests.rig.fleet import Fleet
from tests.rig.fleet import fleet as fleet
from tests.rig.providers import Providers, running_providers


@pytest.fixture
def providers(monkeypatch: pytest.MonkeyPatch) -> Iterator[Providers]:
    """Found by the agents of this process."""
    with running_providers() as running:
        for name, value in running.environment.items():
            monkeypatch.setenv(name, value)
        yield running


@pytest.fixture
def crew(dsn: str, settings: Any) -> Iterator[Crew]:
    """On the agents of tests.integrations.shop and of tests.integrations.yard."""
    settings.HOLDFAST_AGENTS = ("tests.integrations.shop", "tests.integrations.yard")
    agents.cache_clear()
    payload_store.cache_clear()
    announce()
    crew = Crew(dsn)
    yield crew
    crew.close()
    agents.cache_clear()


@pytest.fixture
def shop_fleet(fleet: Fleet, crew: Crew, providers: Providers) -> Fleet:
    """Worker processes on the agents of tests.integrations.shop."""
    fleet.environment |= providers.environment | {"HOLDFAST_AGENTS": "tests.integrations.shop"}
    return fleet
