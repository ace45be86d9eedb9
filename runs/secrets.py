"""Values that nobody may read: sealed before they are written, opened for the call alone, struck from what it says.

Two kinds: what an agent or a tool declares (`Secret[str]`), and text that matches HOLDFAST_REDACT. Sealing is
AES-SIV under a key made from SECRET_KEY: the same value is always sealed to the same bytes, so that a decision is
compared, and an approval bound, without opening anything.
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
import re
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Annotated, Any, TypeVar

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESSIV
from django.conf import ENVIRONMENT_VARIABLE, settings

from journal.encoding import decode, encode
from journal.tags import MAX_DEPTH, Sealed

STRUCK = "[secret]"
SHORTEST_STRUCK = 4  # characters: a shorter secret would be found in half of all sentences
T = TypeVar("T")


class SecretMark:
    """In a JSON schema: `writeOnly`, which forms draw as a password."""

    def __get_pydantic_json_schema__(self, core_schema: Any, handler: Any) -> dict[str, Any]:
        return {**handler(core_schema), "writeOnly": True}


Secret = Annotated[T, SecretMark()]


class SecretUnreadable(ValueError):
    """A sealed value cannot be opened: it was sealed under another SECRET_KEY. Give this process the same key, or the
    old one in SECRET_KEY_FALLBACKS."""


def seal(value: Any) -> Sealed:
    """Of a value that the journal can keep."""
    return value if isinstance(value, Sealed) else Sealed(_ciphers()[0].encrypt(encode(value), None))


def unseal(sealed: Sealed) -> Any:
    """Raises SecretUnreadable."""
    for cipher in _ciphers():
        try:
            return decode(cipher.decrypt(sealed.box, None))
        except InvalidTag:
            continue
    raise SecretUnreadable(" ".join((SecretUnreadable.__doc__ or "").split()))


def _ciphers() -> list[AESSIV]:
    return [_cipher(key) for key in (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)]


@cache
def _cipher(key: str) -> AESSIV:
    return AESSIV(hashlib.sha512(b"holdfast secret v1\0" + key.encode()).digest())


def sealed_by(schema: Mapping[str, Any] | None, value: Any) -> Any:
    """The value with what its JSON schema calls writeOnly, and text that matches HOLDFAST_REDACT, sealed."""
    by_schema = _by_schema(schema, value, schema, MAX_DEPTH) if schema else value
    pattern = redacted()
    return by_schema if pattern is None else _by_pattern(pattern, by_schema, MAX_DEPTH)


def _by_schema(schema: Any, value: Any, root: Mapping[str, Any], depth: int) -> Any:
    if not isinstance(schema, Mapping) or not depth or value is None:
        return value
    if schema.get("writeOnly") is True:
        return seal(value)
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference.startswith("#/$defs/"):
        target = root.get("$defs", {}).get(reference.removeprefix("#/$defs/"))
        value = _by_schema(target, value, root, depth - 1)
    for word in ("anyOf", "oneOf", "allOf"):
        for part in schema.get(word, ()):
            value = _by_schema(part, value, root, depth - 1)
    if isinstance(value, dict):
        properties, others = schema.get("properties", {}), schema.get("additionalProperties")
        return {name: _by_schema(properties.get(name, others), item, root, depth - 1) for name, item in value.items()}
    if isinstance(value, list):
        return [_by_schema(schema.get("items"), item, root, depth - 1) for item in value]
    return value


def _by_pattern(pattern: re.Pattern[str], value: Any, depth: int) -> Any:
    if isinstance(value, str):
        return seal(value) if pattern.search(value) else value
    if not depth:
        return value
    if isinstance(value, dict):
        return {
            pattern.sub(STRUCK, name) if isinstance(name, str) else name: _by_pattern(pattern, item, depth - 1)
            for name, item in value.items()
        }
    if isinstance(value, (list, tuple)):
        return type(value)(_by_pattern(pattern, item, depth - 1) for item in value)
    return value


def opened(value: Any) -> Any:
    """The value with all that is sealed in it opened. Raises SecretUnreadable."""
    if isinstance(value, Sealed):
        return unseal(value)
    if isinstance(value, dict):
        return {name: opened(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(map(opened, value))
    return value


def seals_in(value: Any) -> Iterator[Sealed]:
    """All sealed values in a decoded one, however deep."""
    if isinstance(value, Sealed):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from seals_in(item)
    elif isinstance(value, (list, tuple, set, frozenset)):
        for item in value:
            yield from seals_in(item)


# -- striking ---------------------------------------------------------------------------------------------------------

_in_use: Counter[str] = Counter()
_lock = threading.Lock()


def redacted() -> re.Pattern[str] | None:
    """HOLDFAST_REDACT; None outside of Django, where agents are tested in memory."""
    if not settings.configured and ENVIRONMENT_VARIABLE not in os.environ:
        return None
    return _compiled(settings.HOLDFAST_REDACT) if settings.HOLDFAST_REDACT else None


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


@contextmanager
def in_use(args: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The arguments, opened. Until the call is over no log line of this process shows what was sealed in them."""
    words = list(words_of(args))
    with _lock:
        _in_use.update(words)
    try:
        yield opened(dict(args))
    finally:
        with _lock:
            _in_use.subtract(words)
            for word in words:
                if not _in_use[word]:
                    del _in_use[word]


def words_of(args: Any) -> Iterator[str]:
    """What must not be read in any text: the secrets in these arguments, as text."""
    for sealed in seals_in(args):
        for word in _texts(unseal(sealed)):
            if len(word) >= SHORTEST_STRUCK:
                yield word


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, bytes):
        yield value.decode("latin-1")
    elif value is not None and not isinstance(value, bool):
        yield str(value)


def struck_text(text: str, words: Iterator[str] | tuple[str, ...] = ()) -> str:
    for word in sorted(set(words), key=len, reverse=True):
        text = text.replace(word, STRUCK)
    pattern = redacted()
    return pattern.sub(STRUCK, text) if pattern else text


def struck(value: Any, words: tuple[str, ...] = (), depth: int = MAX_DEPTH) -> Any:
    """The value without these words, and without what matches HOLDFAST_REDACT, in any text in it."""
    if isinstance(value, str):
        return struck_text(value, words)
    if isinstance(value, BaseException):
        return value
    if not depth:
        return value
    if isinstance(value, dict):
        return {struck(name, words, depth - 1): struck(item, words, depth - 1) for name, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)) and type(value) in (list, tuple, set, frozenset):
        return type(value)(struck(item, words, depth - 1) for item in value)
    if dataclasses.is_dataclass(value) or hasattr(type(value), "__pydantic_fields__"):
        plain = decode(encode(value))
        clean = struck(plain, words, depth - 1)
        return value if clean == plain else clean
    return value


def is_unreadable(*texts: str | None) -> bool:
    """Whether one of them matches HOLDFAST_REDACT. Names and keys are shown and searched: such a one is refused."""
    pattern = redacted()
    return pattern is not None and any(text and pattern.search(text) for text in texts)


HANDED_ON = frozenset({"payload", "value", "args", "result"})  # to the agent, or by it to a tool


def unreadable(body: dict[str, Any]) -> dict[str, Any]:
    """What a person says in an entry, without what matches HOLDFAST_REDACT: sealed where it may be needed."""
    if redacted() is None:
        return body
    return {name: sealed_by(None, said) if name in HANDED_ON else struck(said) for name, said in body.items()}


def struck_line(line: str) -> str:
    """A log line without the secrets that calls of this process use right now."""
    with _lock:
        words = tuple(_in_use)
    return struck_text(line, words) if words or settings.HOLDFAST_REDACT else line
