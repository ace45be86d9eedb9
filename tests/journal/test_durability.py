from typing import Any

import psycopg

from journal.durability import durability_faults


def test_a_server_that_may_forget_is_named(conn: psycopg.Connection[Any]) -> None:
    faults = durability_faults(conn)
    off = "SELECT name FROM pg_settings WHERE name IN ('fsync', 'full_page_writes') AND setting = 'off' ORDER BY name"
    assert [(fault.split()[0],) for fault in faults] == conn.execute(off).fetchall()
