"""Every way in which an answer itself comes out wrong, over every protocol, streamed and whole: the run ends well."""

import pytest

from demo.providers.faults import SPOILED
from demo.providers.turns import call, turn
from tests.loops.journals import PROTOCOLS
from tests.loops.test_run import desk, environment, run
from tests.rig.providers import Providers

__all__ = ["environment"]


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("fault", SPOILED)
@pytest.mark.parametrize("model", PROTOCOLS)
def test_a_spoiled_answer_is_corrected_or_asked_for_again(
    providers: Providers, model: str, fault: str, stream: bool
) -> None:
    providers.script("m", [turn(call("lookup", order="o-1"), call("lookup", order="o-2")), "Done."])
    providers.fault(fault, model="m")
    trial = run(desk(f"{model}:m", stream=stream))
    if fault in ("content_filter", "refusal"):
        assert trial.status == "held" and "refused to answer" in trial.reason
        trial.resume()
    assert trial.result == "Done.", (trial.status, trial.reason)
