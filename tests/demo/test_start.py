import signal
import socket
import subprocess
import sys
from pathlib import Path

from tests.rig.ledger import ROOT, Ledger, wait_until


def test_it_says_when_the_port_is_taken(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        command = [sys.executable, "-m", "demo.payments", "--port", port, "--storage", str(tmp_path / "p.sqlite3")]
        ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=90, check=False)
    assert ended.returncode == 1
    assert ended.stderr == f"payments: cannot listen on port {port}: Address already in use\n"


def test_manage_py_payments_serves_and_leaves_on_sigterm(tmp_path: Path) -> None:
    port_file = tmp_path / "port"
    command = [sys.executable, "manage.py", "payments", "--port", "0", "--port-file", str(port_file)]
    command += ["--storage", str(tmp_path / "p.sqlite3")]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as service:
        wait_until(port_file.exists, "the service listens")
        assert service.stdout is not None
        assert service.stdout.readline() == f"payments: http://127.0.0.1:{port_file.read_text().strip()}\n"
        service.send_signal(signal.SIGTERM)
        assert service.wait(60) == 0


def test_it_needs_neither_django_nor_the_product() -> None:
    probe = "import sys, demo.payments.__main__; print(sorted({m.split('.')[0] for m in sys.modules}))"
    loaded = subprocess.run([sys.executable, "-c", probe], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert not any(f"'{name}'" in loaded for name in ("django", "journal", "runs", "recovery", "config", "httpx"))


def test_a_stopped_service_starts_again_on_its_port(ledger: Ledger) -> None:
    address = ledger.url
    ledger.stop()
    ledger.start()
    assert ledger.url == address
