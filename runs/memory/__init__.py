"""The engine without a database: for tests of agents, and for stateless runs."""
