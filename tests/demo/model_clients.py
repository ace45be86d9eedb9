"""The real clients of the three protocols, pointed at scripted providers."""

import asyncio
import ssl
from collections.abc import Sequence
from typing import Any

import httpx2
from pydantic_ai import ModelRequest, ModelResponse, ToolDefinition
from pydantic_ai.direct import model_request, model_request_stream
from pydantic_ai.messages import ModelMessage, ModelRequestPart, ToolReturnPart, UserPromptPart
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider

from tests.rig.providers import Providers

NAME = "a-model"
PROTOCOLS = ("chat", "responses", "messages")
NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # reading certificates for each client takes longer than a request
ANYTHING = {"type": "object", "properties": {}}
OFFERED = ModelRequestParameters(
    function_tools=[ToolDefinition(name=name, parameters_json_schema=ANYTHING) for name in ("lookup", "refund")]
)
HELLO: list[ModelMessage] = [ModelRequest(parts=[UserPromptPart("Hello.")], instructions="Be good.")]


def model(protocol: str, providers: Providers, client: httpx2.AsyncClient, name: str = NAME) -> Model:
    if protocol == "messages":
        provider = AnthropicProvider(api_key="a-secret", base_url=providers.anthropic_url, http_client=client)
        return AnthropicModel(name, provider=provider)
    openai = OpenAIProvider(api_key="a-secret", base_url=providers.openai_url, http_client=client)
    return {"chat": OpenAIChatModel, "responses": OpenAIResponsesModel}[protocol](name, provider=openai)


def ask(
    providers: Providers,
    protocol: str,
    messages: Sequence[ModelMessage] = HELLO,
    *,
    stream: bool = False,
    name: str = NAME,
    offered: ModelRequestParameters = OFFERED,
    **settings: Any,
) -> ModelResponse:
    """One request, no retries."""

    async def asked() -> ModelResponse:
        async with httpx2.AsyncClient(verify=NO_TLS) as client:
            one = model(protocol, providers, client, name)
            return await ask_with(one, messages, stream=stream, offered=offered, **settings)

    return asyncio.run(asked())


async def ask_with(
    model: Model,
    messages: Sequence[ModelMessage] = HELLO,
    *,
    stream: bool = False,
    offered: ModelRequestParameters = OFFERED,
    **settings: Any,
) -> ModelResponse:
    wanted: Any = {"max_retries": 0, "request_timeout": 20.0, **settings}
    options: Any = {"model_settings": wanted, "model_request_parameters": offered}
    if not stream:
        return await model_request(model, list(messages), **options)
    async with model_request_stream(model, list(messages), **options) as streamed:
        async for _event in streamed:
            pass
        return streamed.get()


def talk(
    providers: Providers, protocol: str, *answers: Any, stream: bool = False, **settings: Any
) -> list[ModelMessage]:
    """Asks, gives each call's result back in order (or says a text), and asks again, until `answers` are used up."""
    messages = list(HELLO)
    for answer in (*answers, None):
        response = ask(providers, protocol, messages, stream=stream, **settings)
        messages.append(response)
        if answer is not None:
            parts: list[ModelRequestPart] = [
                ToolReturnPart(tool_name=call.tool_name, content=answer, tool_call_id=call.tool_call_id)
                for call in response.tool_calls
            ]
            messages.append(ModelRequest(parts=parts or [UserPromptPart(answer)], instructions="Be good."))
    return messages
