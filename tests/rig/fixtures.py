from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rig.ledger import Ledger, running_ledger


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    """The payments service as a process of its own, with empty storage."""
    with running_ledger(tmp_path) as running:
        yield running
