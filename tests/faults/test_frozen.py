"""A database that hangs, as on a frozen disk: connections stand, nothing is answered. A relay before it plays that."""

from __future__ import annotations

import selectors
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from runs.access import ensure_demo_users
from tests.faults.test_connections import Console
from tests.pages.browser import serving

pytestmark = pytest.mark.slow

SOON = 30.0  # seconds; some eight on a machine with nothing else to do


class Relay:
    """A socket in front of the server's. While frozen it takes connections and bytes, and passes nothing on."""

    def __init__(self, server: str, folder: str) -> None:
        self.frozen = threading.Event()
        self._server, self._ended = server, threading.Event()
        self._line = socket.socket(socket.AF_UNIX)
        self._line.bind(f"{folder}/.s.PGSQL.5432")
        self._line.listen(64)
        self._line.settimeout(0.1)
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def close(self) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join(10)
        self._line.close()

    def _accept(self) -> None:
        while not self._ended.is_set():
            try:
                near, _ = self._line.accept()
            except TimeoutError:
                continue
            thread = threading.Thread(target=self._pass_on, args=[near])
            self._threads.append(thread)
            thread.start()

    def _pass_on(self, near: socket.socket) -> None:
        with near, socket.socket(socket.AF_UNIX) as far, selectors.DefaultSelector() as ready:
            far.connect(self._server)
            ready.register(near, selectors.EVENT_READ, far)
            ready.register(far, selectors.EVENT_READ, near)
            while not self._ended.is_set():
                if self.frozen.is_set():
                    self._ended.wait(0.05)
                    continue
                for key, _ in ready.select(0.1):
                    try:
                        read = key.fileobj.recv(65536)  # type: ignore[union-attr]
                        if read:
                            key.data.sendall(read)
                    except OSError:
                        return
                    if not read:
                        return


@pytest.fixture
def relay(dsn: str) -> Iterator[tuple[Relay, str]]:
    with tempfile.TemporaryDirectory(prefix="hfr-") as folder:
        made = Relay(f"{conninfo_to_dict(dsn)['host']}/.s.PGSQL.5432", folder)
        try:
            yield made, make_conninfo(dsn, host=folder)
        finally:
            made.close()


def test_a_database_that_hangs_is_away_within_seconds_and_no_page_says_that_it_is_live(
    relay: tuple[Relay, str], tmp_path: Path
) -> None:
    ensure_demo_users("unused")
    between, dsn = relay
    with serving(dsn, tmp_path) as address:
        console = Console(address)
        assert console.get("/runs")[0] == 200 and console.get("/readyz")[0] == 200
        with console.opened("/live/runs") as stream:
            assert stream.status == 200 and stream.readline()
            between.frozen.set()
            began = time.monotonic()
            page, api, ready = (console.get(path) for path in ("/runs", "/api/v1/runs", "/readyz"))
            assert (page[0], page[1].split(";")[0]) == (503, "text/html") and page[2] < SOON, page
            assert (api[0], api[1]) == (503, "application/problem+json") and api[2] < SOON, api
            assert ready[0] == 503 and ready[2] < SOON, ready
            stream.read()  # to its end
            assert time.monotonic() - began < 3 * SOON
        assert console.get("/healthz")[0] == 200
        between.frozen.clear()
        ends = time.monotonic() + 60
        while console.get("/runs")[0] != 200:
            assert time.monotonic() < ends, "it goes on when the database does"
            time.sleep(0.2)
