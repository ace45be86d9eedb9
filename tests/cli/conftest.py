"""The desk and the cast of the API's tests: the command line is a second door to the same commands. And terminals."""

import pytest

from tests.api.conftest import cast, desk
from tests.cli.manage import AtTerminal, Terminal, begin
from tests.rig.fleet import Nursery, nursery

__all__ = ["cast", "desk", "nursery"]


@pytest.fixture
def at_terminal(nursery: Nursery, dsn: str) -> AtTerminal:
    """Begins `manage.py` with these words at a terminal of its own."""

    def at(*words: object, columns: int = 120, **environment: str) -> Terminal:
        return begin(nursery, words, columns, environment)

    return at
