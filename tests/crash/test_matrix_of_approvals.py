"""Every crash point of a call that people change, that expires, or that two have to agree to.

As in test_matrix_of_waits: done anew for each point that is passed, and the worker is abandoned there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

import pytest

from runs.approvals import decide_approval
from runs.models import Run
from runs.registry import agents, announce
from runs.slots import Approval, Slot
from tests.crash.proof import assert_whole
from tests.crash.test_matrix_of_waits import walk
from tests.rig.crew import Crew, start, state, told
from tests.rig.ledger import Ledger
from tests.rig.robot import APPROVERS, Robot, tried
from tests.runs.policing import result, sent, verdicts


@pytest.fixture
def desk(crew: Crew, settings: Any) -> Iterator[Crew]:
    settings.HOLDFAST_AGENTS = ("tests.runs.policed",)
    agents.cache_clear()
    announce()
    yield crew
    agents.cache_clear()


class Editor(Robot):
    """Changes each call once, before it is approved."""

    def _approve(self, run: Run, slot: Slot, approval: Approval) -> int:
        if slot.editors or slot.attempts:
            return super()._approve(run, slot, approval)
        args = slot.args | {"amount_cents": 200}
        return tried(decide_approval, run_id=run.id, seq=slot.seq, verdict="edit", digest=approval.digest, note="",
                     actor="zoe", groups=APPROVERS, args=args)  # fmt: skip


class Late(Robot):
    """Comes when it has expired once."""

    def _approve(self, run: Run, slot: Slot, approval: Approval) -> int:
        return super()._approve(run, slot, approval) if approval.why or slot.has_expired else 0


class Absent(Robot):
    """Decides nothing."""

    def _approve(self, run: Run, slot: Slot, approval: Approval) -> int:
        return 0


# The policy, who comes, what is charged in the end, and the verdicts, whatever was done twice.
CASES: dict[str, tuple[dict[str, Any], type[Robot], list[int], list[str]]] = {
    "edited": ({"four_eyes": True}, Editor, [200], ["requested", "edited", "requested", "granted"]),
    "edited, of two": ({"quorum": 2}, Editor, [200], ["requested", "edited", "requested", "granted", "granted"]),
    "expired and denied": ({"ttl": 0.2, "on_expiry": "deny"}, Absent, [], ["requested", "expired"]),
    "expired, and anew": ({"ttl": 1}, Late, [400], ["requested", "expired", "requested", "granted"]),
}


def walked(desk: Crew, case: str, make: Callable[[], UUID], robot: Robot, at: int) -> tuple[UUID, str | None]:
    run_id = make()
    return run_id, walk(desk, robot, run_id, at, meanwhile=case.startswith("edited"))


@pytest.mark.slow
@pytest.mark.parametrize("agent", ["pays", "pays-by-model"])
@pytest.mark.parametrize("case", CASES)
def test_the_right_end_wherever_the_worker_dies(desk: Crew, ledger: Ledger, case: str, agent: str) -> None:
    policy, kind, charged, said = CASES[case]
    robot, number, point = kind(ledger.acted), 0, "no crash"
    while True:
        run_id, met = walked(desk, case, lambda: start(agent, {"amount_cents": 400, "policy": policy}), robot, number)
        desk.drive_out(robot, run_id)
        about = f"{point}: {told(Run.objects.get(id=run_id))}"
        assert_whole(run_id)
        assert sent(ledger, run_id) == charged, about
        found = verdicts(run_id)
        if case.startswith("expired, and"):  # what is asked for anew may be late once more
            assert found[:2] == said[:2] and found[-1] == "granted", about
        else:
            assert found == said, about
        if agent == "pays":
            assert result(run_id)["outcome"] == ("succeeded" if charged else "expired"), about
        assert state(run_id).slots[1].settled, about
        if met is None:
            break
        number, point = number + 1, f"crash at point {number}, {met}"
    assert number > 5
