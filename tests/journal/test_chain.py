from datetime import UTC, datetime
from hashlib import sha256
from typing import Any
from uuid import UUID

import psycopg

from journal import chain
from journal.lane import Lane
from tests.journal import oracle
from tests.journal.cast import append, call, draft, new_run, obs, person, send
from tests.journal.oracle import check_journal

PAYLOAD = "aed8a0ebb5f60a8aa06554873318b8e888584ebddf7878258719930ae328cbb2"
ENTRIES = {
    ("OBS", 1, 7, 7, 3, "worker"): "32b46f3258ecde7c2ceee58b13b8538108720387b17455d7b8099273751be6dc",
    ("ATTEMPT", 1, None, None, 3, "worker"): "509d79cd6ea69fa2ce5f10a0a68d7931c18a6a1d216d153b15a09e401aade564",
    ("NOTE", 2, None, None, 2**40, "zoë ☃"): "04f0856ab13dd386df28879cccea31edfa6802f89e39acde2347c0ce5c05187c",
}
LINK = "426ad39fba0b96ae9f70a4f90812a5e84fcdd36c029308024da3a5aea5266e57"
RUN = UUID("0193a000-0000-7000-8000-0000000000ff")
AT = datetime(2026, 11, 29, 12, 0, 0, 123456, tzinfo=UTC)


def test_python_the_database_and_the_rules_by_hand_make_the_golden_bytes(conn: psycopg.Connection[Any]) -> None:
    payload = chain.payload_digest(bytes(range(16)), b'{"a":1}')
    assert payload.hex() == PAYLOAD == sha256(bytes(range(16)) + b'{"a":1}').hexdigest()
    for given, golden in ENTRIES.items():
        assert chain.entry_digest(*given, payload).hex() == golden == oracle.entry_digest(*given, payload).hex()
        row = conn.execute("SELECT journal_entry_digest(%s, %s, %s, %s, %s, %s, %s)", (*given, payload)).fetchone()
        assert row == (bytes.fromhex(golden),)
    digests = [bytes.fromhex(digest) for digest in ENTRIES.values()]
    assert chain.link(bytes(32), RUN, 1, AT, digests).hex() == LINK == oracle.link(bytes(32), RUN, 1, AT, digests).hex()
    sql = "SELECT sha256(%s::bytea || uuid_send(%s) || int8send(1) || journal_us(%s) || %s::bytea)"
    assert conn.execute(sql, (bytes(32), RUN, AT, b"".join(digests))).fetchone() == (bytes.fromhex(LINK),)


def test_appends_of_workers_and_people_make_one_chain(conn: psycopg.Connection[Any], lane: Lane) -> None:
    run = new_run(conn)
    assert send(lane, append(run, 1, 1, 0, call(1), call(2))) == [("written", 1, 2)]
    assert person(conn, run, "r1", draft("RECONCILE"), obs(1), actor="zoë ☃") == ("written", 3, 4)
    assert send(lane, append(run, 1, 2, 4, obs(2), call(3))) == [("written", 5, 6)]
    rows = check_journal(conn, run)
    assert [row[11] is not None for row in rows] == [False, True, False, True, False, True]
    assert [row[12] for row in rows] == [None, None, "r1", None, None, None]
    assert {row[5] for row in rows} == {1}


def test_run_ids_rise_with_time_and_are_version_7(conn: psycopg.Connection[Any]) -> None:
    ids = [row[0] for row in conn.execute("SELECT holdfast_uuid7() FROM generate_series(1, 100)").fetchall()]
    assert ids == sorted(ids) and {i.version for i in ids} == {7} and {i.variant for i in ids} == {RUN.variant}
    assert abs((ids[0].int >> 80) / 1000 - datetime.now(UTC).timestamp()) < 60
