"""What an answer cost, and what a lost request may have cost. Computed once and journaled; not known is not zero."""

from __future__ import annotations

from decimal import Decimal
from functools import cache
from importlib import metadata
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic_ai import ModelResponse

    from runs.slots import Attempt
    from runs.state import RunState

CHARACTERS_PER_TOKEN = 4  # of English; of other languages a token is shorter, so this is about
OUTPUT_AT_MOST = 16_384  # tokens, where no setting bounds them


@cache  # the metadata is read from disk each time
def prices_version() -> str:
    return f"genai-prices {metadata.version('genai-prices')}"


def cost_of(response: ModelResponse) -> Decimal | None:
    """In US dollars; None: the model's price is not known, or the provider did not say what was used."""
    try:
        return Decimal(response.cost().total_price)
    except Exception:  # unknown models raise LookupError, and unknown shapes of usage whatever they meet
        return None


def usage_of(response: ModelResponse, cost: Decimal | None) -> dict[str, float]:
    """As it is summed over a run."""
    used = response.usage
    found: dict[str, float] = {
        "requests": 1, "input_tokens": used.input_tokens or 0, "output_tokens": used.output_tokens or 0,
        "cache_read_tokens": used.cache_read_tokens or 0, "cache_write_tokens": used.cache_write_tokens or 0,
        "reasoning_tokens": (used.details or {}).get("reasoning_tokens", 0) or 0,
    }  # fmt: skip
    return found if cost is None else found | {"cost": float(cost)}


def accounts(response: ModelResponse) -> dict[str, Any]:
    """What a PLAN says of an answer beside its words: who gave it, how it ended, what was used and what that cost."""
    cost = cost_of(response)
    return {
        "usage": usage_of(response, cost), "provider": response.provider_name, "finish": response.finish_reason,
        "cost": None if cost is None else str(cost), "prices": prices_version(),
    }  # fmt: skip


def may_have_cost(attempt: Attempt, state: RunState, settings: dict[str, Any]) -> dict[str, Any]:
    """What an ATTEMPT says of the one before it, whose answer nobody has: the provider may well have made it."""
    output = settings.get("max_tokens")
    output = output if isinstance(output, int) else OUTPUT_AT_MOST
    tokens = int(attempt.told.get("size", 0)) // CHARACTERS_PER_TOKEN
    price = _price(str(attempt.told.get("model", "")), tokens, output)
    lost = {"seq": attempt.seq, "input_tokens": tokens, "output_tokens": output}
    return lost | {"cost": None if price is None else str(price)}


def is_priced(model: str) -> bool:
    """Whether what an answer of "provider:model" costs is known."""
    return _price(model, 1, 1) is not None


def _price(model: str, input_tokens: int, output_tokens: int) -> Decimal | None:
    import genai_prices  # a second to load: only where a request was lost

    provider, _, name = model.partition(":")
    usage = genai_prices.Usage(input_tokens=input_tokens, output_tokens=output_tokens)
    try:
        return Decimal(genai_prices.calc_price(usage, name, provider_id=provider.split("-")[0]).total_price)
    except Exception:  # as above
        return None
