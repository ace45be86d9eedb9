"""The three protocols, each a Dialect: how it is read, answered, streamed and refused."""

from demo.providers.dialects import chat, messages, responses
from demo.providers.dialects.dialect import Dialect

DIALECTS: dict[str, Dialect] = {
    "/v1/chat/completions": chat.DIALECT,
    "/v1/responses": responses.DIALECT,
    "/v1/messages": messages.DIALECT,
}
