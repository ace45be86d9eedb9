"""What an approval binds to."""

from __future__ import annotations

import hashlib
from typing import Any
from uuid import UUID

from journal.encoding import canonical
from runs.tools import Tool


def approval_digest(tool: Tool, args: dict[str, Any], run_id: UUID, step: int) -> str:
    """sha256 over tool name, tool digest, canonical arguments, run id and step, each preceded by its 4-byte length.

    Canonical arguments: the tool's `canonical=` fields, or without it all of them, in our encoding with sorted keys.
    """
    named = tool.fields_of(args)
    bound = canonical(args if named is None else named)
    fields = (tool.name.encode(), tool.digest, bound, run_id.bytes, step.to_bytes(8, "big"))
    return hashlib.sha256(b"".join(len(field).to_bytes(4, "big") + field for field in fields)).hexdigest()


def key_of(run_id: UUID, step: int) -> str:
    """The idempotency key, minted here once and stored in the TOOL_CALL; never derived at read."""
    return f"{run_id}:{step}"
