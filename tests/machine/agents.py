"""`HOLDFAST_AGENTS=tests.machine.agents`: programs on the world's tools."""

from tests.machine.talker import talker as talker
from tests.machine.world import TOOLS
from tests.rig.script import scripted

script, script_decide, script_model = scripted(TOOLS)
DRIVERS = (script.name, script_decide.name, script_model.name)
