"""`python -m demo.providers`: scripted model providers as a process."""

import argparse
import importlib
import sys
from collections.abc import Sequence
from functools import partial

from demo.providers.scenarios import scenario
from demo.providers.server import ProvidersServer
from demo.providers.service import Service
from demo.serving import leave_at_signals, serve_on

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
    leave_at_signals()
    service = Service(keep=keep)
    try:
        for each in scenario:
            _load(service, each)
    except (ImportError, AttributeError, ValueError) as error:
        print(f"providers: no scenario {each}: {error}", file=sys.stderr)
        return 2
    return serve_on(port, port_file, "providers", partial(ProvidersServer, service=service))


def _load(service: Service, wanted: str) -> None:
    model, _, place = wanted.partition("=")
    module, _, name = place.partition(":")
    service.script(model, scenario(getattr(importlib.import_module(module), name)))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="providers", description=__doc__)
    add_arguments(parser)
    return run(**vars(parser.parse_args(arguments)))


if __name__ == "__main__":
    sys.exit(main())
