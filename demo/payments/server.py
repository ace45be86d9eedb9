"""The service on a socket."""

import socket
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from demo.payments.service import Answer, Request, Service, answer_json

LARGEST_BODY = 16 * 1024 * 1024


class PaymentsServer(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 256

    def __init__(self, address: tuple[str, int], service: Service) -> None:
        self.service = service
        super().__init__(address, Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        # Callers that go away in mid-answer are what this service is for.
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


class Handler(BaseHTTPRequestHandler):
    server: PaymentsServer
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    timeout = 300

    def do_GET(self) -> None:
        self._serve()

    def do_POST(self) -> None:
        self._serve()

    def do_DELETE(self) -> None:
        self._serve()

    def _serve(self) -> None:
        length = self.headers.get("Content-Length", "0")
        if not length.isdecimal() or int(length) > LARGEST_BODY:
            self.close_connection = True
            self._send(answer_json(413, {"error": "The body is too large."}))
            return
        address = urlsplit(self.path)
        request = Request(
            method=self.command,
            path=unquote(address.path),
            query=dict(parse_qsl(address.query)),
            headers={name.lower(): value for name, value in self.headers.items()},
            body=self.rfile.read(int(length)),
        )
        answer = self.server.service.answer(request)
        if answer.wait:
            self._wait(answer.wait)
        if answer.cut:
            self._cut()
        else:
            self._send(answer)

    def _wait(self, seconds: float) -> None:
        """Ends early when the caller hangs up: a hang of an hour must not keep a thread for an hour."""
        self.connection.settimeout(seconds)
        try:
            self.connection.recv(1, socket.MSG_PEEK)
        except TimeoutError:
            pass
        finally:
            self.connection.settimeout(self.timeout)

    def _cut(self) -> None:
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def _send(self, answer: Answer) -> None:
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.content_type)
        self.send_header("Content-Length", str(len(answer.body)))
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(answer.body)

    def version_string(self) -> str:
        return "payments"

    def log_message(self, format: str, *args: Any) -> None:
        """Silent: the ledger is the record, and keys do not belong in logs."""
