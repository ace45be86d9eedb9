"""What the demo's services have in common: a socket that expects callers to go away, and a process around it."""

import os
import signal
import socket
import sys
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import FrameType
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit


class Server(ThreadingHTTPServer):
    """A thread for each connection."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 512  # a hundred clients at once must not meet a full queue

    def handle_error(self, request: Any, client_address: Any) -> None:
        # Callers that go away in mid-answer are what these services are for.
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


class Handler(BaseHTTPRequestHandler):
    """GET, POST and DELETE alike come to `serve`. Silent: each service keeps a record of its own."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    timeout = 300

    def serve(self) -> None:
        raise NotImplementedError

    def do_GET(self) -> None:
        self.serve()

    def do_POST(self) -> None:
        self.serve()

    def do_DELETE(self) -> None:
        self.serve()

    def received(self, largest: int) -> dict[str, Any] | None:
        """Method, path, query, headers (names in small letters) and body; None if the body is larger, or of no length:
        then the connection ends with the answer."""
        length = self.headers.get("Content-Length", "0")
        if not length.isdecimal() or int(length) > largest:
            self.close_connection = True
            return None
        address = urlsplit(self.path)
        return {
            "method": self.command,
            "path": unquote(address.path),
            "query": dict(parse_qsl(address.query)),
            "headers": {name.lower(): value for name, value in self.headers.items()},
            "body": self.rfile.read(int(length)),
        }

    def cut(self) -> None:
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def log_message(self, format: str, *args: Any) -> None: ...


def leave_at_signals() -> None:
    """SIGTERM and SIGINT end `serve_on`, and whatever comes before it."""
    signal.signal(signal.SIGTERM, _leave)
    signal.signal(signal.SIGINT, _leave)


def serve_on(port: int, port_file: str | None, name: str, make: Callable[[tuple[str, int]], Server]) -> int:
    """Serves on this machine until a signal; 0 is a free port. 1 when the port is taken."""
    try:
        server = make(("127.0.0.1", port))
    except OSError as error:
        print(f"{name}: cannot listen on port {port}: {error.strerror}", file=sys.stderr)
        return 1
    print(f"{name}: http://127.0.0.1:{server.server_port}", flush=True)
    if port_file:
        _write_whole(Path(port_file), f"{server.server_port}\n")
    try:
        server.serve_forever()
    except SystemExit:
        server.server_close()
    return 0


def _leave(_signal: int, _frame: FrameType | None) -> None:
    raise SystemExit


def _write_whole(path: Path, text: str) -> None:
    """Whoever polls for the file finds all of it or nothing."""
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    draft.write_text(text)
    draft.replace(path)
