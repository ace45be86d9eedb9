"""What can fill the model slot of an agent."""

from runs.agents import FunctionModel

__all__ = ["FunctionModel"]
