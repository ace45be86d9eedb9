from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rig.ledger import Ledger, found_by_agents, running_ledger


@pytest.fixture(scope="session")
def payments(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ledger]:
    """One payments service for many tests: keys begin with a run's id, so that none meets another's."""
    ledger = Ledger(tmp_path_factory.mktemp("payments"))
    yield ledger
    ledger.stop()


@pytest.fixture
def ledger(payments: Ledger) -> Iterator[Ledger]:
    """The payments service as a process, with no fault ordered. Ask it by key: it knows the effects of other tests."""
    payments.clear_faults()
    with found_by_agents(payments):
        yield payments


@pytest.fixture(name="ledger")
def own_ledger(tmp_path: Path) -> Iterator[Ledger]:
    """With empty storage, for one test alone, which may kill it."""
    with running_ledger(tmp_path) as running:
        yield running
