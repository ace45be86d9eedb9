"""What one attempt left open, a later one that surely did nothing does not answer."""

import pytest

from tests.machine.world import WORLD
from tests.rig.crew import Crew, start, state
from tests.rig.robot import Robot


@pytest.mark.parametrize("then", [["transient"] * 3, ["permanent"], ["lost before", "permanent"]])
@pytest.mark.parametrize("first", ["lost after", "lost before"])
def test_a_keyed_call_that_may_have_acted_is_never_told_to_have_failed(
    machine_crew: Crew, first: str, then: list[str]
) -> None:
    WORLD.troubles.extend([first, *then])
    run_id = start("script", [["call", "charge"]])
    machine_crew.drive_out(Robot(WORLD.acted), run_id)
    slot = state(run_id).slots[1]
    assert (slot.outcome, WORLD.acts[slot.key]) == ("succeeded", 1), slot
