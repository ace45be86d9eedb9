"""What a text column can keep. Pure."""

from __future__ import annotations

LONGEST_TEXT = 2_000


def is_writable(text: str) -> bool:
    """No U+0000 and no lone surrogates: PostgreSQL refuses both."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in text


def plain_text(text: str) -> str:
    """The text as a column can keep it; the journal has the exact words."""
    return text[:LONGEST_TEXT].replace("\0", "\u2400").encode("utf-8", "replace").decode("utf-8")
