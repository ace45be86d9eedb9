"""Scripted model providers for tests: a server in a thread of the test's process, apart from killed workers."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from demo.providers.faults import Fault
from demo.providers.scenarios import Decide, Scenario, scenario
from demo.providers.seen import Seen
from demo.providers.server import ProvidersServer
from demo.providers.service import Service
from demo.providers.turns import Turnlike

PATIENCE = 30.0


class Providers:
    """`stop` and `start` keep port, scenarios and what was asked, as a provider that was away would."""

    def __init__(self) -> None:
        self.service = Service(keep=100_000)
        self._port = 0
        self.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    @property
    def openai_url(self) -> str:
        """For `base_url` of OpenAI's client and for OPENAI_BASE_URL."""
        return f"{self.url}/v1"

    @property
    def anthropic_url(self) -> str:
        """For `base_url` of Anthropic's client and for ANTHROPIC_BASE_URL."""
        return self.url

    @property
    def environment(self) -> dict[str, str]:
        """What a worker must find in its environment to ask these providers for real ones."""
        return {
            "OPENAI_BASE_URL": self.openai_url, "OPENAI_API_KEY": "no-key",
            "ANTHROPIC_BASE_URL": self.anthropic_url, "ANTHROPIC_API_KEY": "no-key",
        }  # fmt: skip

    def script(self, model: str, turns: Scenario | Decide | Sequence[Turnlike], *, context: int | None = None) -> None:
        """What answers under this model's name: turns in order, or a function of the request."""
        self.service.script(model, scenario(turns, context=context))

    def fault(self, kind: str, **details: Any) -> None:
        """See demo/providers/faults.py: model, turn, times, seconds, retry_after, after, share."""
        self.service.faults.order(Fault(kind, **details))

    def clear_faults(self) -> None:
        self.service.faults.clear()

    def release(self) -> None:
        """Lets go on who is held now."""
        self.service.faults.release()

    @property
    def requests(self) -> list[Seen]:
        """Everything asked, oldest first."""
        return self.service.record.of()

    def asked(self, model: str) -> list[Seen]:
        return self.service.record.of(model)

    def answered(self, model: str) -> list[Seen]:
        """Those that got a whole answer."""
        return [seen for seen in self.asked(model) if seen.answered]

    def forget(self) -> None:
        """Requests and faults; scenarios stay."""
        self.service.record.clear()
        self.service.faults.clear()

    def start(self) -> None:
        self._server = ProvidersServer(("127.0.0.1", self._port), self.service)
        self._port = self._server.server_port
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Every connection is cut, and the next one refused."""
        self._server.shutdown()
        self._server.server_close()
        self._server.hang_up()
        self._thread.join(PATIENCE)

    @contextmanager
    def away(self) -> Iterator[None]:
        """Nobody listens in the block."""
        self.stop()
        try:
            yield
        finally:
            self.start()


@contextmanager
def running_providers() -> Iterator[Providers]:
    providers = Providers()
    try:
        yield providers
    finally:
        providers.release()
        providers.stop()


@pytest.fixture
def providers() -> Iterator[Providers]:
    """Empty, this test's own."""
    with running_providers() as running:
        yield running
