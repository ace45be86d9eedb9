"""`python -m demo.payments`: the service as a process."""

import argparse
import os
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from demo.payments.server import PaymentsServer
from demo.payments.service import Service
from demo.payments.storage import Storage
from demo.serving import leave_at_signals, serve_on

DEFAULT_PORT = 8010


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--port", type=int, default=DEFAULT_PORT, help="0 takes a free one (default: %(default)s)")
    parser.add_argument("--storage", default=default_storage(), help="SQLite file (default: %(default)s)")
    parser.add_argument("--port-file", help="write the port here once the service listens")


def default_storage() -> str:
    return str(Path(os.environ.get("HOLDFAST_DATA") or "var") / "payments.sqlite3")


def run(*, port: int, storage: str, port_file: str | None) -> int:
    """Serves until SIGTERM or SIGINT. 1 when the port is taken."""
    leave_at_signals()
    store = Storage(storage)
    try:
        return serve_on(port, port_file, "payments", partial(PaymentsServer, service=Service(store)))
    finally:
        store.close()


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="payments", description=__doc__)
    add_arguments(parser)
    return run(**vars(parser.parse_args(arguments)))


if __name__ == "__main__":
    sys.exit(main())
