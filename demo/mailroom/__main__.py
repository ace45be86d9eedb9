"""`python -m demo.mailroom --dsn DSN`: posts each letter once, however often it is asked to under the same key."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote

import psycopg

from runs.once import ONCE_TABLE, KeyReused, known, once

DEFAULT_PORT = 8011
LETTERS = "CREATE TABLE IF NOT EXISTS mailroom_letter (id bigserial PRIMARY KEY, address text, body text)"
POST = "INSERT INTO mailroom_letter (address, body) VALUES (%s, %s) RETURNING id"


class Handler(BaseHTTPRequestHandler):
    """POST /letters under an Idempotency-Key; GET /letters/<key> says whether that was done."""

    dsn: str
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        key = self.headers.get("Idempotency-Key", "")
        letter = json.loads(self.rfile.read(int(self.headers.get("Content-Length", "0"))) or "{}")
        if self.path != "/letters" or not key or not {"address", "body"} <= letter.keys():
            return self.answer(400, {"error": "POST /letters with an Idempotency-Key, address and body"})
        with psycopg.connect(self.dsn) as conn:
            try:
                posted = once(conn, key, lambda: post(conn, letter), args=letter)
            except KeyReused as reused:
                return self.answer(409, {"error": str(reused)})
        return self.answer(200, posted)

    def do_GET(self) -> None:
        key = unquote(self.path.removeprefix("/letters/"))
        with psycopg.connect(self.dsn) as conn:
            done, result = known(conn, key)
        self.answer(200, result) if done else self.answer(404, {"error": "no letter was posted under this key"})

    def answer(self, status: int, body: Any) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Silent: keys do not belong in logs."""


def post(conn: psycopg.Connection[Any], letter: dict[str, Any]) -> dict[str, Any]:
    """The effect itself: it is committed together with its key, or not at all."""
    row = conn.execute(POST, (letter["address"], letter["body"])).fetchone()
    assert row is not None
    return {"letter": row[0], "address": letter["address"]}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="mailroom", description=__doc__)
    parser.add_argument("--dsn", required=True, help="the database of the letters")
    parser.add_argument("--port", type=int, default=DEFAULT_PORT, help="0 takes a free one (default: %(default)s)")
    given = parser.parse_args(arguments)
    with psycopg.connect(given.dsn) as conn:
        conn.execute(ONCE_TABLE)
        conn.execute(LETTERS)
    handler = type("MailroomHandler", (Handler,), {"dsn": given.dsn})
    server = ThreadingHTTPServer(("127.0.0.1", given.port), handler)
    print(f"mailroom: http://127.0.0.1:{server.server_port}", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        server.server_close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
