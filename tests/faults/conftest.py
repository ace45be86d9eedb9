from tests.rig.crew import crew as crew
from tests.rig.fixtures import own_ledger as own_ledger
from tests.rig.fleet import fleet as fleet
