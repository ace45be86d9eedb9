import os
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand, CommandError, CommandParser

from config.embedded import EmbeddedError
from config.environment import read_environment
from config.installation import Installation, InstallationError, free_port, port_is_free
from config.supervisor import Plan, Supervisor, print_line
from demo.model import EXAMPLE, VARIABLE, ModelUnusable, real_model

PAYMENTS_PORT, MODELS_PORT = 8010, 8012  # 8011 is the mailroom's


class Command(BaseCommand):
    help = "Runs everything on this machine: database, broker, web, workers, sweeper, demo. Ctrl-C stops it."
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--port", type=int, help="of the pages (HOLDFAST_PORT, or 8000); 0 takes a free one")
        parser.add_argument(
            "--workers", type=int, default=2, metavar="N", help="worker processes (default: %(default)s)"
        )
        no_demo = f"no demo agents, runs and services ({VARIABLE}={EXAMPLE} gives its support agent a real model)"
        parser.add_argument("--no-demo", action="store_true", help=no_demo)
        parser.add_argument("--data", metavar="DIR", help="where everything is kept (HOLDFAST_DATA, or var/)")
        parser.add_argument("--reload", action="store_true", help="development: restart workers when agents change")
        parser.add_argument(
            "--allow-redefine", action="store_true", help="development: other content under an agent's known version"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["data"]:
            os.environ["HOLDFAST_DATA"] = options["data"]
        try:
            if options["allow_redefine"]:
                os.environ["HOLDFAST_ALLOW_REDEFINE"] = "1"
            if options["reload"]:  # restarted one by one, and the old ones serve the version before until then
                os.environ["HOLDFAST_PROMOTE"] = "1"
            if options["no_demo"]:
                os.environ["HOLDFAST_DEMO"] = "0"
            environment = read_environment()
            port = environment.port if options["port"] is None else options["port"] or free_port(0)
            if not 0 < port < 65_536:
                raise InstallationError(f"--port {port}: a port is a number from 0 to 65535.")
            place = Installation(environment, say=print_line, show=self._show)
            place.open(f"http://127.0.0.1:{port}")
            if not port_is_free(port):
                raise InstallationError(f"Port {port} is taken: stop what listens there, or choose one with --port.")
            workers = max(options["workers"], 0)
            if workers and not environment.agents:
                print_line("no agents: name their modules in HOLDFAST_AGENTS. No workers start.")
                workers = 0
            demo_ports = free_port(PAYMENTS_PORT), free_port(MODELS_PORT)
            plan = Plan(port, workers, not options["no_demo"], *demo_ports, options["reload"])
            if plan.demo:
                self._tell_of_model()
            Supervisor(place, plan).run()
        except (InstallationError, EmbeddedError, ImproperlyConfigured) as error:
            raise CommandError(str(error)) from error

    def _tell_of_model(self) -> None:
        """Which one the demo's support agent asks, unless it is the scripted one."""
        try:
            if (real := real_model()) is not None:
                print_line(f"the demo's support agent asks {real}: its tickets cost money, about twenty a day")
        except ModelUnusable as error:
            print_line(f"{error} The demo's support agent asks its scripted model.")

    def _show(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()
