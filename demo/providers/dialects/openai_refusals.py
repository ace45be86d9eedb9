"""How OpenAI says no: chat completions and responses alike."""

from collections.abc import Mapping
from typing import Any

# kind: status, type, code, message
SAID = {
    "rate_limit": (429, "requests", "rate_limit_exceeded", "Rate limit reached for {model}. Please try again later."),
    "server_error": (500, "server_error", None, "The server had an error while processing your request."),
    "unavailable": (503, "server_error", None, "The engine is currently unavailable, please try again later."),
    "overloaded": (
        503, "server_error", "server_is_overloaded", "The model is currently overloaded, please try again later.",
    ),
    "quota": (
        429, "insufficient_quota", "insufficient_quota",
        "You exceeded your current quota, please check your plan and billing details.",
    ),
    "authentication": (401, "invalid_request_error", "invalid_api_key", "Incorrect API key provided."),
    "not_found": (404, "invalid_request_error", "model_not_found", "The model `{model}` does not exist."),
    "context_length": (
        400, "invalid_request_error", "context_length_exceeded",
        "Your input exceeds the context window of this model. Please adjust your input and try again.",
    ),
    "bad_request": (400, "invalid_request_error", None, "The request was rejected."),
}  # fmt: skip


def refusal(kind: str, model: str) -> tuple[int, Mapping[str, Any]]:
    status, category, code, message = SAID["rate_limit" if kind == "rate_limit_date" else kind]
    said = {"message": message.format(model=model), "type": category, "param": None, "code": code}
    return status, {"error": said}
