"""A request whose bytes cannot be known before it is sent is never sent to find them out."""

import pytest
from pydantic_ai import ModelResponse
from pydantic_ai.models.function import FunctionModel

from runs.loops import exact, providers
from tests.loops.journals import Journal, loop_of


class Ours:
    def __init__(self, http_client: "httpx2.AsyncClient | None" = None) -> None: ...  # type: ignore[name-defined] # noqa: F821


class Theirs:
    def __init__(self, http_client: "httpx.AsyncClient | None" = None) -> None: ...  # type: ignore[name-defined] # noqa: F821


class Nobodys:
    def __init__(self, api_key: str | None = None) -> None: ...


@pytest.mark.parametrize(("provider", "takes"), [(Ours, True), (Theirs, False), (Nobodys, False)])
def test_only_a_client_of_ours_can_stop_a_request(monkeypatch: pytest.MonkeyPatch, provider: type, takes: bool) -> None:
    monkeypatch.setattr(providers, "infer_provider_class", lambda name: provider)
    assert providers.takes_client("elsewhere:model-1") is takes


def test_what_cannot_be_stopped_is_told_without_a_request(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object) -> ModelResponse:
        raise AssertionError("it was sent")

    journal = Journal(loop_of("elsewhere:model-1"))
    monkeypatch.setattr(exact, "takes_client", lambda name: False)
    monkeypatch.setattr(exact, "model_of", lambda *_, **__: FunctionModel(never))
    shown = exact.exact(journal.agent.content, journal.state, "elsewhere:model-1")
    assert shown.url == "model:elsewhere:model-1"
    assert b"Refund o-1, please" in shown.body
