"""The scripted deploy of `make bench ARGS='--only deploy'`, with fewer runs: nothing is lost, no key is used twice, and
every run ends under the version that it began under. How long its phases take is measured there, not here."""

import pytest

from bench.deploy import deploy
from bench.world import world


@pytest.mark.slow
def test_a_version_is_deployed_under_load_and_taken_back() -> None:
    with world() as here:
        found = deploy(here, rate=4, steps=12, flying=10)

    assert found["runs"] > 20
    wrong = ("lost", "not done", "ended under another version", "calls repeated", "calls missing")
    assert {name: found[name] for name in wrong} == dict.fromkeys(wrong, 0)
