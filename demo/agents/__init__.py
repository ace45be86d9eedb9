"""The demo's agents: what a worker finds at the module level here is what it serves."""

from demo.agents.ledger_migration import ledger_migration as ledger_migration_agent
from demo.agents.ledger_migration import ledger_shard as ledger_shard_agent
from demo.agents.refund_desk import refund_desk as refund_desk_agent
from demo.agents.support import support as support_agent
from demo.agents.support import support_of_a_real_model as support_of_a_real_model_agent
from demo.agents.travel_booking import travel_booking as travel_booking_agent

__all__ = [
    "ledger_migration_agent",
    "ledger_shard_agent",
    "refund_desk_agent",
    "support_agent",
    "support_of_a_real_model_agent",
    "travel_booking_agent",
]
