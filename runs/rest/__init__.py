"""Runs, agents and gates over HTTP, as JSON and as streams."""
