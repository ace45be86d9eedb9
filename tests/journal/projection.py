from collections.abc import Sequence
from typing import Any

from journal.committer import Append


class Projected:
    """Keeps a status a run, as the runs' projection does."""

    sql = """UPDATE projected r SET status = a.status, as_of_seq = h.append_last_seq
        FROM unnest(%(runs)b::uuid[], %(epochs)b::bigint[], %(numbers)b::bigint[], %(status)b::text[])
             AS a (run, epoch, number, status)
        JOIN journal_head h ON h.run_id = a.run AND h.epoch = a.epoch AND h.last_append_no = a.number
             AND NOT h.append_refused
        WHERE r.run = a.run AND r.as_of_seq < h.append_last_seq"""

    def statements(self, appends: Sequence[Append]) -> list[tuple[str, dict[str, Any]]]:
        arguments = {
            "runs": [a.run_id for a in appends],
            "epochs": [a.epoch for a in appends],
            "numbers": [a.number for a in appends],
            "status": [a.then["status"] for a in appends],
        }
        return [(self.sql, arguments)]
