"""What a text column can keep. Pure."""

from __future__ import annotations

import unicodedata

LONGEST_TEXT = 2_000
BLANK = frozenset("\u115f\u1160\u2800\u3164\uffa0")  # letters and signs that show nothing


def said_text(text: str | None) -> str:
    """What somebody wrote, without the blanks around it; empty where nothing in it can be seen."""
    said = (text or "").strip()
    return said if any(unicodedata.category(one)[0] not in "CZ" and one not in BLANK for one in said) else ""


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
