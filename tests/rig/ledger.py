"""The effect ledger: the payments service as a real process, and the questions tests ask it."""

import http.client
import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 60.0


class Ledger:
    """Starts on a free port; `kill` and `start` again keep port and storage, as a service that crashed would."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._port = folder, 0
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    @property
    def environment(self) -> dict[str, str]:
        """What a worker must find in its environment to use this ledger."""
        return {"HOLDFAST_PAYMENTS_URL": self.url}

    def start(self) -> None:
        port_file = self._folder / "payments.port"
        port_file.unlink(missing_ok=True)
        command = [sys.executable, "-m", "demo.payments", "--port", str(self._port)]
        command += ["--storage", str(self._folder / "payments.sqlite3"), "--port-file", str(port_file)]
        self._process = process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)

        def listening() -> bool:
            assert process.poll() is None, f"the payments service ended with {process.returncode}"
            return port_file.exists()

        wait_until(listening, "the payments service listens")
        self._port = int(port_file.read_text())

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def _end(self, how: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(PATIENCE)
            self._process = None

    def effects(self, key: str | None = None) -> list[dict[str, Any]]:
        """What really acted, oldest first; all of it without a key (the first thousand)."""
        query = {"limit": "1000"} if key is None else {"key": key}
        return list(self.get(f"/effects?{urlencode(query)}")["effects"])

    def acted(self, key: str) -> int:
        """How often something acted under this key."""
        return int(self.get(f"/effects?{urlencode({'key': key})}")["total"])

    def replays(self, key: str) -> int:
        """Requests under this key that were answered again without acting."""
        return int(self.get(f"/effects?{urlencode({'key': key})}")["replays"])

    def status(self, key: str) -> dict[str, Any] | None:
        """The first answer given under this key."""
        found = self.send("GET", f"/status/{quote(key)}")[1]
        return found["result"] if found["found"] else None

    def counted(self, name: str) -> int:
        return int(self.get(f"/count/{quote(name)}")["count"])

    def calls(self, key: str) -> int:
        """How often a rig tool was called under this key, whether or not it came to act."""
        return self.counted(f"call {key}")

    def probes(self, key: str) -> int:
        return self.counted(f"probe {key}")

    def model_requests(self, run_id: object) -> int:
        return self.counted(f"model {run_id}")

    def fault(self, action: str, fault: str, **details: Any) -> None:
        """See demo/payments/faults.py: key, seconds, times, retry_after, size, body."""
        status, answer = self.send("POST", "/faults", {"action": action, "fault": fault, **details})
        assert status == 201, answer

    def faults(self) -> list[dict[str, Any]]:
        return list(self.get("/faults")["faults"])

    def clear_faults(self) -> None:
        self.send("DELETE", "/faults")

    def get(self, path: str) -> Any:
        status, answer = self.send("GET", path)
        assert status == 200, (path, status, answer)
        return answer

    def send(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None, timeout: float = PATIENCE
    ) -> tuple[int, Any]:
        """Status and JSON answer, refusals too. Raises OSError when no answer comes."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, headers or {}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=timeout) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as refusal:
            with refusal:
                return refusal.code, json.load(refusal)
        except http.client.HTTPException as cut:  # killed in the middle of its answer
            raise ConnectionError(str(cut)) from cut


@contextmanager
def found_by_agents(ledger: Ledger) -> Iterator[None]:
    """Agents of this process use it in the block."""
    before = os.environ.get("HOLDFAST_PAYMENTS_URL")
    os.environ.update(ledger.environment)
    try:
        yield
    finally:
        del os.environ["HOLDFAST_PAYMENTS_URL"]
        if before is not None:
            os.environ["HOLDFAST_PAYMENTS_URL"] = before


@contextmanager
def running_ledger(folder: Path) -> Iterator[Ledger]:
    """A ledger for the block; agents of this process find it too."""
    ledger = Ledger(folder)
    try:
        with found_by_agents(ledger):
            yield ledger
    finally:
        ledger.stop()


def wait_until(holds: Callable[[], object], what: str, *, within: float = PATIENCE) -> None:
    """Polls until `holds()`; fails with `what` after `within` seconds."""
    deadline = time.monotonic() + within
    while not holds():
        assert time.monotonic() < deadline, f"not within {within:g} s: {what}"
        time.sleep(0.02)
