from tests.rig.fixtures import ledger as ledger
