"""The demo's agents: what a worker finds at the module level here is what it serves."""

from demo.agents.refund_desk import refund_desk as refund_desk_agent

__all__ = ["refund_desk_agent"]
