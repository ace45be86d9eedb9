"""The providers on a socket: a thread for each connection."""

import socket
import threading
import time
from typing import Any

from demo import serving
from demo.providers.service import Answer, Request, Service, answer_json

LARGEST_BODY = 64 * 1024 * 1024
LOOK = 0.05  # seconds between two looks whether the caller of a held answer is still there


class Gone(Exception):
    """The caller hung up."""


class ProvidersServer(serving.Server):
    def __init__(self, address: tuple[str, int], service: Service) -> None:
        self.service = service
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        super().__init__(address, Handler)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        with self._lock:
            self._open.add(request)
        try:
            super().process_request_thread(request, client_address)
        finally:
            with self._lock:
                self._open.discard(request)

    def hang_up(self) -> None:
        """Cuts every connection."""
        with self._lock:
            for connection in self._open:
                try:
                    connection.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass


class Handler(serving.Handler):
    server: ProvidersServer

    def serve(self) -> None:
        received = self.received(LARGEST_BODY)
        if received is None:
            self._send(answer_json(413, {"error": "The body is too large, or has no length."}))
            return
        answer = self.server.service.answer(Request(**received))
        try:
            self._deliver(answer)
        except (Gone, ConnectionError, TimeoutError):
            self.close_connection = True
            if answer.seen is not None:
                answer.seen.gone, answer.seen.answered = True, False

    def _deliver(self, answer: Answer) -> None:
        self._wait(answer.wait)
        if answer.cut == 0:
            self.cut()
        elif answer.streamed:
            self._stream(answer)
        else:
            self._hold(answer, 0)
            self._send(answer)

    def _send(self, answer: Answer) -> None:
        (body,) = answer.pieces
        self._head(answer, "Content-Length", str(len(body)))
        if answer.cut is not None:
            self.wfile.write(body[: len(body) // 2])
            self.cut()
            return
        self._note(answer, last=True)
        self.wfile.write(body)

    def _stream(self, answer: Answer) -> None:
        self._hold(answer, 0)
        self._head(answer, "Transfer-Encoding", "chunked")
        for place, piece in enumerate(answer.pieces):
            if place:
                self._wait(answer.pace)
                self._hold(answer, place)
            if place == answer.cut:
                self.cut()
                return
            self._note(answer, last=place == len(answer.pieces) - 1)
            self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
        self.wfile.write(b"0\r\n\r\n")

    def _note(self, answer: Answer, *, last: bool) -> None:
        """Before the bytes leave: whoever has read the last of them finds the request answered."""
        if answer.seen is not None:
            answer.seen.pieces += 1
            answer.seen.answered = last and answer.whole

    def _head(self, answer: Answer, framing: str, value: str) -> None:
        if answer.seen is not None:
            answer.seen.status = answer.status
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.content_type)
        self.send_header(framing, value)
        for name, text in answer.headers.items():
            self.send_header(name, text)
        self.end_headers()

    def _hold(self, answer: Answer, place: int) -> None:
        if answer.gate is not None and place == answer.held:
            while not answer.gate.is_set():
                self._wait(LOOK)

    def _wait(self, seconds: float) -> None:
        """Raises Gone as soon as the caller hangs up: a delay of an hour must not keep a thread for an hour."""
        if seconds <= 0:
            return
        ends = time.monotonic() + seconds
        self.connection.settimeout(seconds)
        try:
            if not self.connection.recv(1, socket.MSG_PEEK):
                raise Gone
            time.sleep(max(0.0, ends - time.monotonic()))  # the next request is here already
        except TimeoutError:
            pass
        finally:
            self.connection.settimeout(self.timeout)

    def version_string(self) -> str:
        return "providers"
