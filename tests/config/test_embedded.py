"""The embedded servers: from nothing, after a crash, without namespaces, and their words when they cannot start."""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from config.embedded import EmbeddedError, socket_folder, valkey
from config.embedded.postgres import Postgres
from config.environment import read_environment
from config.installation import Installation, InstallationError

pytestmark = pytest.mark.slow
FORGETFUL = {"fsync": "off"}


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    home = tmp_path / "pg"
    yield home
    Postgres(home).stop(signal.SIGQUIT)
    shutil.rmtree(tmp_path, ignore_errors=True)


def buried(server: subprocess.Popen[bytes]) -> None:
    server.wait(60)


def rows(home: Path) -> int:
    with psycopg.connect(host=str(socket_folder(home)), user="holdfast", dbname="holdfast") as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS kept (n int)")
        connection.execute("INSERT INTO kept VALUES (1)")
        (count,) = connection.execute("SELECT count(*) FROM kept").fetchone() or (0,)
        return int(count)


def test_it_starts_from_nothing_and_again_after_a_kill(home: Path) -> None:
    server = Postgres(home).start()
    assert rows(home) == 1
    os.kill(server.pid, signal.SIGKILL)
    buried(server)
    second = Postgres(home).start(60)
    assert rows(home) == 2
    Postgres(home).stop()
    buried(second)


def test_nobody_else_can_reach_the_socket_folder(home: Path) -> None:
    server = Postgres(home, FORGETFUL).start()
    assert socket_folder(home).stat().st_mode & 0o077 == 0
    Postgres(home).stop()
    buried(server)


def test_a_folder_with_a_long_name_gets_a_short_socket(tmp_path: Path) -> None:
    home = tmp_path / ("long" * 30) / "pg"
    server = Postgres(home, FORGETFUL).start()
    assert rows(home) == 1
    Postgres(home).stop()
    buried(server)
    shutil.rmtree(socket_folder(home))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root needs another user")
def test_root_without_namespaces_starts_it_as_nobody(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_NO_NAMESPACE", "1")
    server = Postgres(home, FORGETFUL).start()
    assert Path(f"/proc/{server.pid}").stat().st_uid == 65534
    assert (home / "data/postmaster.pid").exists() and rows(home) == 1
    Postgres(home).stop()
    buried(server)
    shutil.rmtree(home.resolve().parent)


def test_a_server_that_cannot_start_is_quoted(home: Path) -> None:
    with pytest.raises(EmbeddedError, match="shared_buffers"):
        Postgres(home, FORGETFUL | {"shared_buffers": "many"}).start(5)


def test_a_broker_that_was_killed_starts_again_beside_its_old_socket(tmp_path: Path) -> None:
    for _ in range(2):
        server = valkey.start(tmp_path / "broker")
        assert valkey.answers(tmp_path / "broker")
        server.kill()
        buried(server)


def test_a_full_disk_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10, 9, 1))  # type: ignore[attr-defined]
    place = Installation(read_environment({"HOLDFAST_DATA": str(tmp_path / "var")}), say=print, show=print)
    with pytest.raises(InstallationError, match=r"The disk is full: 300 MB are needed in .*var, 0 MB are free\."):
        place.open("http://127.0.0.1:8000")


def test_a_data_folder_that_is_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "var").write_text("")
    place = Installation(read_environment({"HOLDFAST_DATA": str(tmp_path / "var")}), say=print, show=print)
    with pytest.raises(InstallationError, match=r"The data folder .*var cannot be used: File exists\."):
        place.open("http://127.0.0.1:8000")
