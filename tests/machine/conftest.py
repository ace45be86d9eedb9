from tests.machine.rig import machine_crew as machine_crew
