"""Bring your own agent: a `pydantic_ai.Agent`, unchanged, on the journal."""

from runs.integrations.pydantic_ai.declared import journaled

__all__ = ["journaled"]
