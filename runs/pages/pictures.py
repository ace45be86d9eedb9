"""Payloads that a page shows in place: a model's answer that lies outside of its entry, and pictures."""

from __future__ import annotations

from base64 import b64encode
from functools import lru_cache
from typing import Any

from journal.encoding import Pointer
from journal.errors import PayloadError
from journal.payloads import BYTES, payload_store

LARGEST_LOADED = 512 * 2**10  # bytes of a payload that a page reads to draw it in place
MOST_LOADED = 8 * 2**20
LARGEST_PICTURE = 16 * 2**20
# By how they begin. No other type is ever sent as what it says it is: an SVG, say, could act.
BEGINNINGS = {b"\x89PNG\r\n\x1a\n": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif"}
NAMED = frozenset({*BEGINNINGS.values(), "image/webp"})


def picture_type(beginning: bytes) -> str:
    """The media type of a picture that browsers only draw; empty: it is none."""
    if beginning[:4] == b"RIFF" and beginning[8:12] == b"WEBP":
        return "image/webp"
    return next((media for begins, media in BEGINNINGS.items() if beginning.startswith(begins)), "")


@lru_cache(4_096)  # a pointer names its content by hash: what it begins with never changes
def _begins(pointer: Pointer) -> str:
    return picture_type(payload_store().preview(pointer, 16))


def is_picture(pointer: Pointer) -> bool:
    """Whether its bytes are a picture, and not too large to be shown."""
    if pointer.media_type not in (*NAMED, BYTES) or pointer.size > LARGEST_PICTURE:
        return False
    try:
        return bool(_begins(pointer))
    except PayloadError:
        return False


class Loader:
    """Values of payloads for one page: None for what the store does not have or does not answer, and for what is too
    large, alone or with what was loaded before."""

    def __init__(self) -> None:
        self._left = MOST_LOADED

    def __call__(self, pointer: Pointer) -> Any:
        if pointer.size > min(LARGEST_LOADED, self._left):
            return None
        self._left -= pointer.size
        try:
            return _loaded(pointer)
        except PayloadError:
            return None


@lru_cache(64)
def _loaded(pointer: Pointer) -> Any:
    return payload_store().load(pointer)


def data_uri(value: bytes) -> str:
    """A small picture as an address that needs no request; empty: it is none."""
    media = picture_type(value[:16])
    return f"data:{media};base64,{b64encode(value).decode()}" if media else ""
