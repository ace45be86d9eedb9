"""The stream of a run that is read as a conversation: new turns at the end, turns that changed, what is arriving."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from runs.pages.blocks import Block
from runs.pages.run_page import RunPage

MOST_CHANGES = 60  # blocks; drawing all of it anew is less then


class Render(Protocol):
    def __call__(self, name: str, **more: Any) -> str: ...


class ChatPicture:
    """What one browser has of it."""

    def __init__(self) -> None:
        self._before: Mapping[int, tuple[Any, ...]] | None = None
        self._frame: tuple[Any, ...] = ()
        self._arriving = ""

    def blocks(self, page: RunPage, anew: bool, render: Render) -> Sequence[Block]:
        assert page.chat is not None
        now = {turn.seq: (turn.kind, page.ended, *turn.told) for turn in page.chat.turns}
        before, frame = self._before, (page.earlier, page.later)
        anew = anew or (before is not None and (self._frame != frame or not starts_with(now, before)))
        self._before, self._frame = now, frame
        found = [] if anew or before is None else [*changes(page, before, now, render)]
        arriving = render("chat/_under_way") if page.later is None else ""
        if anew or len(found) > MOST_CHANGES:
            found = [Block("#chat", "outerMorph", render("_chat"))]
        elif arriving != self._arriving:
            found.append(Block("#under-way", "outerMorph", arriving))
        self._arriving = arriving
        return found


def starts_with(now: Mapping[int, Any], before: Mapping[int, Any]) -> bool:
    """Whether what is new stands at the end."""
    return list(now)[: len(before)] == list(before)


def changes(
    page: RunPage, before: Mapping[int, tuple[Any, ...]], now: Mapping[int, tuple[Any, ...]], render: Render
) -> Iterable[Block]:
    assert page.chat is not None
    for turn in page.chat.turns:
        if turn.seq not in before:
            yield Block("#turns", "append", render("chat/_turn", turn=turn))
        elif before[turn.seq] != now[turn.seq]:
            yield Block(f"#turn-{turn.seq}", "outerMorph", render("chat/_turn", turn=turn))
