"""The tables of the runs room."""

from runs.models.console import AgentScope, AuditRecord, BulkAct, BulkItem, SavedView, Token
from runs.models.runs import (
    DOUBT_STANDS,
    DOUBT_STANDS_SQL,
    ENDED,
    Evidence,
    Gate,
    Permit,
    Release,
    Run,
    Stage,
    Status,
    Tally,
    Throttle,
    WorkerSession,
)

__all__ = [
    "DOUBT_STANDS",
    "DOUBT_STANDS_SQL",
    "ENDED",
    "AgentScope",
    "AuditRecord",
    "BulkAct",
    "BulkItem",
    "Evidence",
    "Gate",
    "Permit",
    "Release",
    "Run",
    "SavedView",
    "Stage",
    "Status",
    "Tally",
    "Throttle",
    "Token",
    "WorkerSession",
]
