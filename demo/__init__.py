"""Example agents and the payments service they talk to."""
