"""The service on a socket."""

import socket

from demo import serving
from demo.payments.service import Answer, Request, Service, answer_json

LARGEST_BODY = 16 * 1024 * 1024


class PaymentsServer(serving.Server):
    def __init__(self, address: tuple[str, int], service: Service) -> None:
        self.service = service
        super().__init__(address, Handler)


class Handler(serving.Handler):
    server: PaymentsServer

    def serve(self) -> None:
        received = self.received(LARGEST_BODY)
        if received is None:
            self._send(answer_json(413, {"error": "The body is too large."}))
            return
        answer = self.server.service.answer(Request(**received))
        if answer.wait:
            self._wait(answer.wait)
        if answer.cut:
            self.cut()
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
