"""Results that JSON, PostgreSQL or a row would not take: kept, told apart, and never a reason for a second call."""

import hashlib
import json
import math
from typing import Any
from uuid import UUID

from django.db import connection

from journal.encoding import canonical
from journal.payloads import payload_store
from journal.verify import verify_run
from runs.queries import entries_of, state_of
from tests.rig.crew import Crew, start
from tests.rig.ledger import Ledger
from tests.rig.values import VALUES


def refuse(constant: str) -> None:
    raise AssertionError(f"{constant} is no JSON")


def stored(run_id: UUID) -> list[bytes]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT body FROM journal_entry WHERE run_id = %s ORDER BY seq", [run_id])
        return [bytes(body) for (body,) in cursor.fetchall()]


def returned(crew: Crew, name: str) -> tuple[UUID, Any]:
    """A run whose tool returned this value, and the result as its journal reads back."""
    run_id = start("value", {"name": name})
    assert crew.drive(run_id).status == "done"
    return run_id, state_of(run_id).slots[1].result


def test_not_a_number_and_infinity_are_kept_in_strict_json(crew: Crew, ledger: Ledger) -> None:
    run_id, result = returned(crew, "nan")
    assert math.isnan(result)
    other, rates = returned(crew, "infinity")
    assert rates == {"rate": math.inf, "worst": -math.inf}
    for body in stored(run_id) + stored(other):
        json.loads(body, parse_constant=refuse)
    assert ledger.calls(f"{run_id}:1") == ledger.calls(f"{other}:1") == 1


def test_a_nul_and_the_six_characters_that_write_it_stay_apart(crew: Crew, ledger: Ledger) -> None:
    results = [returned(crew, name)[1] for name in ("nul", "written nul", "nul")]
    assert results == ["before\x00after", "before\\u0000after", "before\x00after"]
    digests = [hashlib.sha256(canonical(result)).hexdigest() for result in results]
    assert digests[0] == digests[2] != digests[1]


def test_types_that_json_does_not_know_read_back_as_they_were(crew: Crew, ledger: Ledger) -> None:
    exact = ("datetime", "naive datetime", "date", "time", "timedelta", "decimal", "uuid", "bytes", "set", "tuple")
    for name in (*exact, "number keys", "looks like a tag", "huge int", "minus zero", "surrogate"):
        run_id, result = returned(crew, name)
        assert result == VALUES[name](), name
        assert type(result) is type(VALUES[name]()), name
        assert ledger.calls(f"{run_id}:1") == 1
    for name in ("lock", "cycle", "enum", "dataclass", "exception"):
        run_id, _ = returned(crew, name)
        assert b" at 0x" not in b"".join(stored(run_id)), name
        assert ledger.calls(f"{run_id}:1") == 1


def test_fifty_megabytes_lie_beside_the_journal(crew: Crew, ledger: Ledger) -> None:
    run_id, pointer = returned(crew, "50 MB bytes")
    assert ledger.calls(f"{run_id}:1") == 1
    assert max(len(body) for body in stored(run_id)) <= 32_768
    assert verify_run(run_id) == []
    (whole,) = [payload_store().resolve(e.body)["result"] for e in entries_of(run_id) if e.kind == "OBS"]
    assert whole == bytes(50_000_000)
    assert pointer != whole, "what the page reads is the pointer"
