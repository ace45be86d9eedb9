"""A worker dies by SIGKILL at each point of a run's first send, for each effect class; another one goes on."""

import pytest

from tests.rig.crew import start
from tests.rig.fleet import Fleet
from tests.rig.ledger import Ledger


@pytest.mark.parametrize("point", ["after-effect"])
@pytest.mark.parametrize("agent", ["keyed"])
def test_x(fleet: Fleet, ledger: Ledger, agent: str, point: str) -> None:
    import time
    t = time.monotonic()
    victim = fleet.worker(crash=point)
    run_id = start(agent)
    fleet.bury(victim)
    print("died", time.monotonic() - t)
    fleet.worker()
    fleet.sweeper()
    run = fleet.rests(run_id)
    print("rests", time.monotonic() - t, run.status, run.reason)
    print(fleet.story())
