"""What can fill the model slot of an agent."""

from runs.agents import FunctionModel
from runs.loops.declared import ModelLoop

__all__ = ["FunctionModel", "ModelLoop"]
