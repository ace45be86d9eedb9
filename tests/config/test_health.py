"""/healthz says that the process answers, /readyz that it can do its work."""

import pytest
from django.test import Client


def test_healthz_needs_no_database(client: Client) -> None:
    assert client.get("/healthz").json() == {"status": "ok"}


def test_readyz_is_content_with_a_migrated_database(client: Client, dsn: str) -> None:
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json()) == (200, {"status": "ok", "faults": []})


def test_readyz_refuses_a_database_that_forgets(client: Client, dsn: str, settings) -> None:  # type: ignore[no-untyped-def]
    settings.HOLDFAST_ALLOW_NO_FSYNC = False
    answer = client.get("/readyz")
    assert answer.status_code == 503 and answer.json()["faults"][0].startswith("fsync is off")


def test_readyz_names_a_missing_migration(client: Client, dsn: str) -> None:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM django_migrations WHERE app = 'runs'")
    answer = client.get("/readyz")
    assert answer.status_code == 503 and "migration runs." in answer.json()["faults"][0]


@pytest.mark.django_db
def test_pages_allow_no_inline_script_and_no_other_host(client: Client) -> None:
    policy = client.get("/login").headers["Content-Security-Policy"]
    assert "script-src 'self'" in policy and "unsafe" not in policy and "http" not in policy
