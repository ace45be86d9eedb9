"""`python -m demo.payments`: the service as a process."""

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from demo.payments.server import PaymentsServer
from demo.payments.service import Service
from demo.payments.storage import Storage

DEFAULT_PORT = 8010


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--port", type=int, default=DEFAULT_PORT, help="0 takes a free one (default: %(default)s)")
    parser.add_argument("--storage", default=default_storage(), help="SQLite file (default: %(default)s)")
    parser.add_argument("--port-file", help="write the port here once the service listens")


def default_storage() -> str:
    return str(Path(os.environ.get("HOLDFAST_DATA") or "var") / "payments.sqlite3")


def run(*, port: int, storage: str, port_file: str | None) -> int:
    """Serves until SIGTERM or SIGINT. 1 when the port is taken."""
    signal.signal(signal.SIGTERM, _leave)
    signal.signal(signal.SIGINT, _leave)
    store = Storage(storage)
    try:
        server = PaymentsServer(("127.0.0.1", port), Service(store))
    except OSError as error:
        print(f"payments: cannot listen on port {port}: {error.strerror}", file=sys.stderr)
        return 1
    print(f"payments: http://127.0.0.1:{server.server_port}", flush=True)
    if port_file:
        _write_whole(Path(port_file), f"{server.server_port}\n")
    try:
        server.serve_forever()
    except SystemExit:
        server.server_close()
    store.close()
    return 0


def _leave(_signal: int, _frame: FrameType | None) -> None:
    raise SystemExit


def _write_whole(path: Path, text: str) -> None:
    """Whoever polls for the file finds all of it or nothing."""
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    draft.write_text(text)
    draft.replace(path)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="payments", description=__doc__)
    add_arguments(parser)
    return run(**vars(parser.parse_args(arguments)))


if __name__ == "__main__":
    sys.exit(main())
