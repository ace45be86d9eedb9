"""How a request to a model can fail. Light: the engine and the pages know these without any provider's client."""

from __future__ import annotations


class ModelFailed(Exception):
    """There is no answer, or none that is whole. `code`: the sort of failure, one of those that the ERROR entry of an
    attempt names; `says`: a sentence; `retry_after`: seconds, as the provider asked for."""

    def __init__(
        self, code: str, says: str, *, retry_after: float | None = None, status: int | None = None,
        request_id: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__(says)
        self.code, self.says, self.retry_after = code, says, retry_after
        self.status, self.request_id = status, request_id
