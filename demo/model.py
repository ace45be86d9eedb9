"""Which model the demo's support agent talks to: the scripted one, or the real one that HOLDFAST_DEMO_MODEL names."""

import os
import re
from collections.abc import Mapping

VARIABLE = "HOLDFAST_DEMO_MODEL"
URL, KEY = "HOLDFAST_DEMO_MODEL_URL", "HOLDFAST_DEMO_MODEL_KEY"  # of the local providers, for the scripted model alone
SCRIPTED = "claude-haiku-4-5-scripted-001"  # priced as Claude Haiku 4.5 would be; nobody pays for it
EXAMPLE = "anthropic:claude-haiku-4-5-20251001"
KEYS = {
    "anthropic": "ANTHROPIC_API_KEY",
    "openai": "OPENAI_API_KEY",
    "openai-chat": "OPENAI_API_KEY",
    "openai-responses": "OPENAI_API_KEY",
}


class ModelUnusable(Exception):
    """HOLDFAST_DEMO_MODEL cannot be used; the text says why."""


def real_model(given: Mapping[str, str] = os.environ) -> str | None:
    """As "provider:model"; None where the variable is not set. Raises ModelUnusable."""
    wanted = given.get(VARIABLE, "").strip()
    if not wanted:
        return None
    provider, colon, name = wanted.partition(":")
    if not colon or not re.fullmatch(r"[\w./-]+", name):
        raise ModelUnusable(f"{VARIABLE}={wanted!r}: name the provider and its model, as {EXAMPLE}.")
    if provider not in KEYS:
        raise ModelUnusable(f"{VARIABLE}={wanted}: of the providers the demo knows {', '.join(KEYS)}, not {provider}.")
    if not given.get(KEYS[provider], "").strip():
        raise ModelUnusable(f"{VARIABLE}={wanted} needs the provider's key in {KEYS[provider]}, which is not set.")
    return wanted


def real_model_or_none(given: Mapping[str, str] = os.environ) -> str | None:
    """None also where it cannot be used: `up` has said so."""
    try:
        return real_model(given)
    except ModelUnusable:
        return None
