"""Agents of other libraries, run on the journal."""
