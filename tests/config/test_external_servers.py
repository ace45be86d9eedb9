"""The same product on servers that somebody else runs: PostgreSQL 15 and Redis, both behind a password."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.config.external import installed_postgres, installed_redis
from tests.config.rig import Up, command, processes_of

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    folder = tmp_path_factory.mktemp("servers")
    with installed_postgres(folder) as database, installed_redis(folder) as broker:
        yield {"DATABASE_URL": database, "BROKER_URL": broker}


@pytest.fixture(scope="module")
def up(servers: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    with Up(tmp_path_factory.mktemp("external") / "var", variables=servers) as running:
        yield running.wait_until_ready()


def test_up_starts_no_server_of_its_own(up: Up) -> None:
    assert not (up.data / "pg").exists() and not (up.data / "broker").exists()
    assert up.answers()


def test_a_run_goes_to_its_end(up: Up, servers: dict[str, str]) -> None:
    with psycopg.connect(servers["DATABASE_URL"]) as database:
        (number,) = database.execute("SELECT current_setting('server_version_num')::int").fetchone() or (0,)
        assert number >= 150000
    payments = up.printed().split("payments service: ")[1].split()[0]
    words = ("start", "refund-desk", "--input", '{"order_id": "o-1"}', "--wait")
    variables = servers | {"HOLDFAST_DATA": str(up.data), "HOLDFAST_PAYMENTS_URL": payments}
    done = subprocess.run(**command(*words, variables=variables), capture_output=True, timeout=120)
    assert done.returncode in (0, 4), done.stderr
    assert isinstance(json.loads(done.stdout.splitlines()[-1]), dict)


def test_doctor_finds_no_fault_and_hides_the_password(up: Up, servers: dict[str, str]) -> None:
    looked = subprocess.run(**command("doctor", variables=servers), capture_output=True, timeout=60)
    assert looked.returncode == 0, looked.stdout + looked.stderr
    password = servers["DATABASE_URL"].split(":")[2].split("@")[0]
    assert "/orders" in looked.stdout and password not in looked.stdout


def test_ctrl_c_leaves_those_servers_alone(servers: dict[str, str], tmp_path: Path) -> None:
    with Up(tmp_path / "var", variables=servers) as second:
        second.wait_until_ready()
    assert second.process.returncode == 0 and not processes_of(second.data)
    with psycopg.connect(servers["DATABASE_URL"]) as database:
        assert database.execute("SELECT count(*) FROM runs_workersession WHERE ended_at IS NOT NULL").fetchone()
