"""Two texts beside each other: which lines changed, and which words of them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import zip_longest

AROUND = 2  # unchanged lines kept on either side of a change, where only changes are shown
MOST_LINES = 2_000  # of a side; beyond that a page helps nobody
LONGEST_LINE = 2_000  # characters whose words are compared
ALIKE = 0.3  # of two lines: below this they share too little for marks within them to mean anything
WORDS = re.compile(r"\w+|\s+|[^\w\s]")


@dataclass(frozen=True, slots=True)
class Piece:
    text: str
    changed: bool = False


@dataclass(frozen=True, slots=True)
class Line:
    """`look`: empty where both sides have it, `del` or `ins`, `pad` where only the other side has a line here, `fold`
    for unchanged lines that are not shown."""

    look: str
    pieces: Sequence[Piece]

    @property
    def changed(self) -> bool:
        return self.look in ("del", "ins")


@dataclass(frozen=True, slots=True)
class TextDiff:
    """Both sides have as many lines: what stands beside each other belongs together."""

    before: Sequence[Line]
    after: Sequence[Line]
    cut: bool = False

    @property
    def same(self) -> bool:
        return not any(line.changed for line in (*self.before, *self.after))


PAD = Line("pad", (Piece(""),))


def text_diff(before: str, after: str, *, changes_only: bool = False) -> TextDiff:
    """Line by line. `changes_only`: of unchanged lines those next to a change alone, and how many others there are."""
    old, new = before.splitlines(), after.splitlines()
    cut = max(len(old), len(new)) > MOST_LINES
    pairs = list(_pairs(old[:MOST_LINES], new[:MOST_LINES]))
    if changes_only:
        pairs = list(_folded(pairs))
    return TextDiff([left for left, _ in pairs], [right for _, right in pairs], cut)


def _pairs(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[Line, Line]]:
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            yield from ((Line("", (Piece(text),)), Line("", (Piece(text),))) for text in old[i1:i2])
            continue
        for left, right in zip_longest(old[i1:i2], new[j1:j2]):
            yield _changed(left, right)


def _changed(left: str | None, right: str | None) -> tuple[Line, Line]:
    if left is None or right is None:
        mine = PAD if left is None else Line("del", (Piece(left, True),))
        return mine, PAD if right is None else Line("ins", (Piece(right, True),))
    before, after = _words(left, right)
    return Line("del", before), Line("ins", after)


def _words(left: str, right: str) -> tuple[list[Piece], list[Piece]]:
    """The lines with the words marked that differ; all of it where nearly all differs."""
    if max(len(left), len(right)) > LONGEST_LINE:
        return [Piece(left, True)], [Piece(right, True)]
    old, new = WORDS.findall(left), WORDS.findall(right)
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    if matcher.ratio() < ALIKE:
        return [_indented(left)[0], _indented(left)[1]], [_indented(right)[0], _indented(right)[1]]
    before: list[Piece] = []
    after: list[Piece] = []
    spans = matcher.get_opcodes()
    for n, (tag, i1, i2, j1, j2) in enumerate(spans):
        inner = 0 < n < len(spans) - 1 and not "".join(old[i1:i2]).strip()  # between two words that differ
        for side, text in ((before, "".join(old[i1:i2])), (after, "".join(new[j1:j2]))):
            _join(side, text, tag != "equal" or inner)
    return before, after


def _join(side: list[Piece], text: str, changed: bool) -> None:
    if text and side and side[-1].changed == changed:
        side[-1] = Piece(side[-1].text + text, changed)
    elif text:
        side.append(Piece(text, changed))


def _indented(text: str) -> tuple[Piece, Piece]:
    """White space in front is nothing that differs."""
    bare = text.lstrip()
    return Piece(text[: len(text) - len(bare)]), Piece(bare, True)


def _folded(pairs: Sequence[tuple[Line, Line]]) -> Iterator[tuple[Line, Line]]:
    near = {
        at + off
        for at, (left, right) in enumerate(pairs)
        if left.look or right.look
        for off in range(-AROUND, AROUND + 1)
    }
    skipped = 0
    for at, pair in enumerate(pairs):
        if at in near:
            if skipped:
                yield _fold(skipped)
            skipped = 0
            yield pair
        else:
            skipped += 1
    if skipped:
        yield _fold(skipped)


def _fold(count: int) -> tuple[Line, Line]:
    said = Line("fold", (Piece(f"{count} line{'s' if count > 1 else ''} the same"),))
    return said, said
