from tests.recovery.draining import fly as fly
from tests.rig.crew import crew as crew
from tests.rig.fixtures import ledger as ledger
from tests.rig.fleet import fleet as fleet
