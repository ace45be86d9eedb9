"""Bring your own agent: a `pydantic_ai.Agent`, unchanged, on the journal."""

from runs.integrations.pydantic_ai.declared import journaled
from runs.integrations.pydantic_ai.messages import messages_in, messages_of

__all__ = ["journaled", "messages_in", "messages_of"]
