import json
from io import StringIO
from typing import Any

import psycopg
import pytest
from django.core.management import CommandError, call_command

from journal import chain
from journal.encoding import decode
from tests.journal.cast import draft, new_run, obs, person

type Conn = psycopg.Connection[Any]


@pytest.mark.django_db(transaction=True)
def test_exported_lines_carry_every_byte_of_the_chain(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as conn:
        run = new_run(conn)
        person(conn, run, "r-1", draft("START"), obs(1, n=float("nan"), text="zoë \0"), actor="zoë")
    said = StringIO()
    call_command("journal", "export", str(run), stdout=said)
    one, two = [json.loads(line) for line in said.getvalue().splitlines()]
    assert (one["run_id"], one["seq"], one["request_id"], two["actor"], two["settles"]) == (
        str(run),
        1,
        "r-1",
        "zoë",
        1,
    )
    assert decode(two["body"].encode())["text"] == "zoë \0"
    for line in (one, two):
        payload = chain.payload_digest(bytes.fromhex(line["salt"]), line["body"].encode())
        digest = chain.entry_digest(
            line["kind"], line["v"], line["step"], line["settles"], line["epoch"], line["actor"], payload
        )
        assert digest[:4].hex() == line["spot"]
    with pytest.raises(CommandError, match="There is no run"):
        call_command("journal", "export", "00000000-0000-7000-8000-000000000007", stdout=StringIO())
