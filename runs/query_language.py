"""The language in which people ask for runs: `status:held agent:refund-desk -label:tier:gold epoch:>1`. Pure.

Terms stand with blanks between and must all hold. Of several values of one key one is enough; a minus in front means
that it must not hold; a term without a key names a run. What a term means to the database is in runs/listing.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from difflib import get_close_matches
from math import isfinite
from uuid import UUID

from runs.errors import QueryInvalid
from runs.texts import is_writable

type Value = str | int | float | timedelta | date | datetime

LONGEST = 4_000
MOST_TERMS = 200
COMPARISONS = (">=", "<=", ">", "<")

OPEN = (
    "needs_reconciliation", "awaiting_approval", "quarantined", "held", "running", "waiting", "waiting_for_version",
    "queued",
)  # fmt: skip
ENDED = ("done", "failed", "cancelled")
STATUS_WORDS: dict[str, tuple[str, ...]] = {status: (status,) for status in (*OPEN, *ENDED)} | {
    "open": OPEN,
    "ended": ENDED,
    "reconcile": ("needs_reconciliation",),
    "approval": ("awaiting_approval",),
    "stranded": ("waiting_for_version",),
}
HAS = {
    "person": "nobody but a person moves it",
    "question": "it waits for an answer",
    "intent": "an intent has no result, and nobody knows whether it happened",
    "takeover": "more than one epoch",
    "acted": "a person acted on it, or it was cancelled",
    "repeated": "an effect without a key happened twice",
    "overbudget": "held by a brake",
    "stranded": "no worker serves its release",
    "parent": "another run started it",
    "fork": "it began with a part of another run's journal",
    "gate": "held by a gate",
}
DAYS = ("today", "yesterday")
SPAN = re.compile(r"(\d+(?:\.\d+)?)(s|m|h|d|w)")
UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
LONGEST_SPAN = 3_660 * 86_400  # seconds


@dataclass(frozen=True, slots=True)
class Term:
    """`key` is empty for a word that names a run; `name` is a label's. `start` and `end` are its place in the text."""

    key: str
    value: Value
    start: int
    end: int
    name: str = ""
    op: str = "="
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Key:
    """`reads` makes the value out of what was written, or raises ValueError with what to write instead."""

    reads: Callable[[str], Value]
    hint: str
    compares: bool = False


def any_text(text: str) -> str:
    return text


def one_of(words: Iterable[str], what: str) -> Callable[[str], str]:
    known = tuple(words)

    def read(text: str) -> str:
        if text.lower() in known:
            return text.lower()
        near = get_close_matches(text.lower(), known, 1)
        meant = f" Did you mean {near[0]}?" if near else ""
        raise ValueError(f"There is no {what} {text[:60]}.{meant} Write one of {', '.join(known)}.")

    return read


def whole(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 16):
        raise ValueError("Write a whole number here, as in epoch:>1.")
    return int(text)


def amount(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = float("nan")
    if not isfinite(number):
        raise ValueError("Write a number here, as in cost:>1.50.")
    return number


def span(text: str) -> timedelta:
    parts = SPAN.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise ValueError("Write how long, as in age:>1h: a number and s, m, h, d or w.")
    seconds = sum(float(number) * UNITS[unit] for number, unit in parts)
    if seconds > LONGEST_SPAN:
        raise ValueError("Write at most ten years.")
    return timedelta(seconds=seconds)


def moment(text: str) -> str | date | datetime:
    """A day, or a time; a time without a zone is meant in the reader's."""
    if text.lower() in DAYS:
        return text.lower()
    try:
        return date.fromisoformat(text) if re.fullmatch(r"\d{4}-\d\d-\d\d", text) else in_reach(text)
    except ValueError:
        raise ValueError(
            "Write a day or a time, as in started:2031-01-31 or started:>2031-01-31T12:00Z; or today, yesterday."
        ) from None


def span_or_moment(text: str) -> Value:
    if SPAN.match(text):
        return span(text)
    try:
        return moment(text)
    except ValueError:
        raise ValueError("Write how long ago, as in ended:<24h, or when, as in ended:>2031-01-31T12:00Z.") from None


def in_reach(text: str) -> datetime:
    if not re.match(r"\d{4}-\d\d-\d\d[T ]", text):
        raise ValueError(text)
    return datetime.fromisoformat(text)


KEYS: dict[str, Key] = {
    "status": Key(one_of(STATUS_WORDS, "status"), "held, running, open, ended …"),
    "agent": Key(any_text, "the agent's name"),
    "has": Key(one_of(HAS, "has:"), "person, question, intent, takeover, overbudget, stranded …"),
    "release": Key(any_text, "agent@version, a version, or a release's id"),
    "label": Key(any_text, "label:name:value"),
    "tool": Key(any_text, "a tool that it called"),
    "at": Key(any_text, "the tool or wait that it stands at"),
    "region": Key(any_text, "where its worker was"),
    "parent": Key(any_text, "the run that started it"),
    "fork": Key(any_text, "the run that it was forked from"),
    "epoch": Key(whole, "how often it was claimed: epoch:>1", compares=True),
    "cost": Key(amount, "what it cost: cost:>1", compares=True),
    "tokens": Key(whole, "tokens used: tokens:>50000", compares=True),
    "age": Key(span, "since it was started: age:>1h", compares=True),
    "started": Key(moment, "a day or time: started:today, started:>2031-01-31", compares=True),
    "ended": Key(span_or_moment, "how long ago it ended, or when: ended:<24h, ended:today", compares=True),
}


@dataclass(frozen=True, slots=True)
class Word:
    """A piece of the text between blanks. `quoted` marks which of its characters stood in quotes."""

    start: int
    end: int
    text: str
    quoted: tuple[bool, ...]
    places: tuple[int, ...]

    def cut(self, at: int) -> Word:
        """Without its first `at` characters."""
        place = self.places[at] if at < len(self.places) else self.end
        return Word(place, self.end, self.text[at:], self.quoted[at:], self.places[at:])

    def find(self, character: str) -> int:
        """Where it stands outside of quotes; -1: nowhere."""
        for at, (found, quoted) in enumerate(zip(self.text, self.quoted, strict=True)):
            if found == character and not quoted:
                return at
        return -1


def parse(text: str) -> tuple[Term, ...]:
    """The terms in the order in which they were written. Raises QueryInvalid, which says where and what instead."""
    if len(text) > LONGEST:
        raise QueryInvalid(f"A query has at most {LONGEST:,} characters.", LONGEST, len(text) - LONGEST)
    if not is_writable(text):
        at = next(i for i, character in enumerate(text) if not is_writable(character))
        raise QueryInvalid("This character cannot be part of a query.", at)
    words = split(text)
    if len(words) > MOST_TERMS:
        raise QueryInvalid(f"A query has at most {MOST_TERMS} terms.", words[MOST_TERMS].start)
    return tuple(term_of(word) for word in words)


def split(text: str) -> list[Word]:
    words, at = [], 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        word = word_from(text, at)
        words.append(word)
        at = word.end
    return words


def word_from(text: str, start: int) -> Word:
    at, opened = start, -1
    said: list[tuple[str, bool, int]] = []
    while at < len(text) and (opened >= 0 or not text[at].isspace()):
        if opened >= 0 and text[at] == "\\" and text[at + 1 : at + 2] in ('"', "\\"):
            said.append((text[at + 1], True, at))
            at += 1
        elif text[at] == '"':
            opened = -1 if opened >= 0 else at
            if opened < 0 and not said:
                said.append(("", True, at))  # "": a word that is empty on purpose
        else:
            said.append((text[at], opened >= 0, at))
        at += 1
    if opened >= 0:
        raise QueryInvalid('This quotation mark is not closed. Write " behind the value.', opened, at - opened)
    characters = [part for part in said if part[0]]
    return Word(
        start, at, "".join(c for c, _, _ in characters), tuple(q for _, q, _ in characters),
        tuple(place for _, _, place in characters),
    )  # fmt: skip


def term_of(word: Word) -> Term:
    negated = word.find("-") == 0
    rest = word.cut(1) if negated else word
    if not rest.text and rest.start == rest.end:
        raise QueryInvalid("Write behind the minus what must not hold, as in -status:done.", word.start)
    colon = rest.find(":")
    key = rest.text[:colon].lower() if colon >= 0 else ""
    if key not in KEYS:
        refuse_misspelt(key, rest, colon)
        return named(rest, word, negated)
    value = rest.cut(colon + 1)
    if not value.text:
        raise QueryInvalid(f"Write a value behind {key}: {KEYS[key].hint}.", word.end)
    return labelled(value, word, negated) if key == "label" else valued(key, value, word, negated)


def refuse_misspelt(key: str, rest: Word, colon: int) -> None:
    """Request keys and business ids have colons too: only what looks like a key is taken for one."""
    near = get_close_matches(key, KEYS, 1, cutoff=0.75) if colon > 0 else []
    if near:
        said = f'There is no key {key}. Did you mean {near[0]}? To search for this very text write "{rest.text[:60]}".'
        raise QueryInvalid(said, rest.start, colon)


def named(rest: Word, word: Word, negated: bool) -> Term:
    if not rest.text:
        raise QueryInvalid("Write an id, a request key or a business id between the quotation marks.", rest.start)
    return Term("", rest.text, word.start, word.end, negated=negated)


def labelled(value: Word, word: Word, negated: bool) -> Term:
    colon = value.find(":")
    if colon <= 0:
        said = "A label is written label:name:value"
        raise QueryInvalid(
            f"{said}, as in label:{value.text[:60] or 'tier'}:gold.", value.start, word.end - value.start
        )
    return Term("label", value.text[colon + 1 :], word.start, word.end, value.text[:colon], negated=negated)


def valued(key: str, value: Word, word: Word, negated: bool) -> Term:
    op = next((op for op in COMPARISONS if value.text.startswith(op) and not any(value.quoted[: len(op)])), "=")
    written = value if op == "=" else value.cut(len(op))
    if op != "=" and not KEYS[key].compares:
        raise QueryInvalid(f"{key}: takes no {op}. Write {KEYS[key].hint}.", value.start, len(op))
    try:
        read = KEYS[key].reads(written.text)
    except ValueError as wrong:
        raise QueryInvalid(str(wrong), written.start, max(word.end - written.start, 1)) from None
    if op == "=" and isinstance(read, timedelta):
        raise QueryInvalid(f"Write > or < behind {key}:, as in {key}:>1h.", value.start, word.end - value.start)
    return Term(key, read, word.start, word.end, op=op, negated=negated)


# -- writing -----------------------------------------------------------------------------------------------------------


def quoted(text: str, always: bool = False) -> str:
    """As a value is written: in quotation marks where a blank or a mark of the language would part it."""
    if text and not always and not re.search(r'[\s"]', text) and not text.startswith(("-", *COMPARISONS)):
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def written(key: str, value: str) -> str:
    """One term. A label's `value` is `name:value`; without a key it names a run."""
    if key == "label":
        name, _, text = value.partition(":")
        return f"label:{quoted(name)}:{quoted(text)}"
    return f"{key}:{quoted(value)}" if key else quoted(value, always=":" in value)


def ids_query(ids: Sequence[UUID]) -> str:
    """The query that these runs match and no other does."""
    return " ".join(map(str, ids))


# -- completing --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Completing:
    """What a person is writing: a key (`key` empty) or a value of `key`. `start` to `end` would be replaced."""

    key: str
    name: str
    begun: str
    start: int
    end: int


def completing(text: str, caret: int) -> Completing:
    """The term in which the caret stands. Never raises: what is being written is often wrong yet."""
    caret = max(0, min(caret, len(text)))
    start, inside = 0, False
    for at, character in enumerate(text[:caret]):
        inside = not inside if character == '"' else inside
        if character.isspace() and not inside:
            start = at + 1
    end = caret
    while end < len(text) and not text[end].isspace():
        end += 1
    begun = text[start:caret].removeprefix("-")
    start = caret - len(begun)
    key, colon, value = begun.partition(":")
    if not colon or key.lower() not in KEYS:
        return Completing("", "", begun.lower(), start, end)
    name, colon, rest = value.partition(":") if key.lower() == "label" else ("", "", value)
    value = rest if colon else value
    at = caret - len(value)
    return Completing(key.lower(), name if colon else "", value.strip('"'), at, end)
