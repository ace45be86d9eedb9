"""Benchmarks: Holdfast beside DBOS Transact on one PostgreSQL, in one run. `python -m bench --help`."""
