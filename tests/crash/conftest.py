from tests.rig.crew import crew as crew
from tests.rig.fixtures import ledger as ledger
from tests.rig.fleet import fleet as fleet
from tests.rig.talks import desk as desk
from tests.rig.talks import talking as talking
