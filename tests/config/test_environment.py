"""What the environment says, with defaults filled in and mistakes named."""

from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from config.environment import read_environment


def test_without_variables_everything_is_embedded_below_the_data_folder(tmp_path: Path) -> None:
    found = read_environment({"HOLDFAST_DATA": str(tmp_path)})
    assert found.database_is_embedded and found.broker_is_embedded
    assert found.database["user"] == found.database["dbname"] == "holdfast"
    assert found.broker_url.startswith("redis+socket:///")


def test_a_database_url_keeps_its_options() -> None:
    found = read_environment({"DATABASE_URL": "postgresql://o:p%20w@db:6432/d?sslmode=require"})
    assert found.database == {
        "host": "db", "port": "6432", "user": "o", "password": "p w", "dbname": "d", "sslmode": "require"
    }  # fmt: skip


def test_agents_add_to_the_demo_and_the_demo_can_be_dropped() -> None:
    assert read_environment({"HOLDFAST_AGENTS": "a.b, c"}).agents == ("demo.agents", "a.b", "c")
    assert read_environment({"HOLDFAST_AGENTS": "a.b", "HOLDFAST_DEMO": "0"}).agents == ("a.b",)


@pytest.mark.parametrize("number", ["0", "-1", "soon", "nan", "inf"])
def test_a_senseless_number_is_named(number: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="HOLDFAST_LEASE_SECONDS"):
        read_environment({"HOLDFAST_LEASE_SECONDS": number})


def test_a_senseless_database_url_is_named() -> None:
    with pytest.raises(ImproperlyConfigured, match="DATABASE_URL"):
        read_environment({"DATABASE_URL": "mysql://db/x"})


def test_unknown_variables_are_ignored() -> None:
    assert read_environment({"HOLDFAST_UNKNOWN": "x"}).port == 8000
