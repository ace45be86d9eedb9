"""A database that says nothing is given up within seconds, with the answer that it is away."""

from __future__ import annotations

import socket
import time

import psycopg
import pytest

from journal import patience
from journal.patience import PatientConnection, patient


def test_a_statement_without_an_answer_is_given_up_and_its_connection_closed(dsn: str) -> None:
    conn = PatientConnection.connect(dsn, autocommit=True)
    began = time.monotonic()
    with patient(0.3), pytest.raises(psycopg.OperationalError, match="did not answer in time"):
        conn.execute("SELECT pg_sleep(60)")
    assert time.monotonic() - began < 20 and conn.closed


def test_what_is_known_to_take_long_may(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with PatientConnection.connect(dsn, autocommit=True) as conn, patient(60):
        assert conn.execute("SELECT pg_sleep(0.5)").rowcount == 1
        with patient(0.1), pytest.raises(psycopg.OperationalError):
            conn.execute("SELECT pg_sleep(60)")


def test_a_server_that_takes_connections_and_says_nothing_is_given_up(dsn: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        with pytest.raises(psycopg.OperationalError):
            PatientConnection.connect(f"host=127.0.0.1 port={port} dbname=x", connect_timeout=patience.CONNECT)


def test_a_statement_that_was_given_up_does_not_go_on_at_the_server(dsn: str) -> None:
    conn = PatientConnection.connect(dsn, autocommit=True, options=patience.SERVER, application_name="gave up")
    with patient(0.3), pytest.raises(psycopg.OperationalError):
        conn.execute("SELECT pg_sleep(50)")
    ends = time.monotonic() + 40
    with psycopg.connect(dsn, autocommit=True) as other:
        while other.execute("SELECT FROM pg_stat_activity WHERE application_name = 'gave up'").rowcount:
            assert time.monotonic() < ends
            time.sleep(0.2)
