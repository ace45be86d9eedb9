"""The test rig: a ledger of effects outside the product, and agents whose every effect lands in it."""
