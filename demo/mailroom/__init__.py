"""A service of one's own made keyed by `once`: `python -m demo.mailroom`. Letters and keys are in one database."""
