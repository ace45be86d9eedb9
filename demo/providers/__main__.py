"""`python -m demo.providers`: scripted model providers as a process."""

import argparse
import importlib
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from demo.providers.scenarios import scenario
from demo.providers.server import ProvidersServer
from demo.providers.service import Service

DEFAULT_PORT = 8011


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--port", type=int, default=DEFAULT_PORT, help="0 takes a free one (default: %(default)s)")
    parser.add_argument("--port-file", help="write the port here once the providers listen")
    parser.add_argument("--keep", type=int, default=1000, help="requests remembered (default: %(default)s)")
    parser.add_argument(
        "--scenario", action="append", default=[], metavar="MODEL=MODULE:NAME",
        help="the scenario of a model: a function of the request, or a list of turns (may be repeated)",
    )  # fmt: skip


def run(*, port: int, port_file: str | None = None, keep: int = 1000, scenario: Sequence[str] = ()) -> int:
    """Serves until SIGTERM or SIGINT. 1 when the port is taken, 2 when a scenario is not found."""
    signal.signal(signal.SIGTERM, _leave)
    signal.signal(signal.SIGINT, _leave)
    service = Service(keep=keep)
    try:
        for each in scenario:
            _load(service, each)
    except (ImportError, AttributeError, ValueError) as error:
        print(f"providers: no scenario {each}: {error}", file=sys.stderr)
        return 2
    try:
        server = ProvidersServer(("127.0.0.1", port), service)
    except OSError as error:
        print(f"providers: cannot listen on port {port}: {error.strerror}", file=sys.stderr)
        return 1
    print(f"providers: http://127.0.0.1:{server.server_port}", flush=True)
    if port_file:
        _write_whole(Path(port_file), f"{server.server_port}\n")
    try:
        server.serve_forever()
    except SystemExit:
        server.server_close()
    return 0


def _load(service: Service, wanted: str) -> None:
    model, _, place = wanted.partition("=")
    module, _, name = place.partition(":")
    service.script(model, scenario(getattr(importlib.import_module(module), name)))


def _leave(_signal: int, _frame: FrameType | None) -> None:
    raise SystemExit


def _write_whole(path: Path, text: str) -> None:
    """Whoever polls for the file finds all of it or nothing."""
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    draft.write_text(text)
    draft.replace(path)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="providers", description=__doc__)
    add_arguments(parser)
    return run(**vars(parser.parse_args(arguments)))


if __name__ == "__main__":
    sys.exit(main())
