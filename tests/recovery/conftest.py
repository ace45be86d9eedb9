from tests.rig.crew import crew as crew
from tests.rig.fixtures import ledger as ledger
