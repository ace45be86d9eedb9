"""What the address of a run's page asks for. Every link of the page is this address with something changed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from django.http import QueryDict

from runs.pages.timeline import AXES, FOLDED

JOURNAL, CHAT = VIEWS = ("journal", "chat")
ENTRY, STATE, POINTERS = TABS = ("entry", "state", "pointers")


def whole(text: str | None) -> int | None:
    """The number, or None for what is none."""
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 16 else None


@dataclass(frozen=True, slots=True)
class Asked:
    """`seq`: the entry shown. `at`: the seq that the state is folded to, `against`: another to compare it with.
    `after`: the window of a long journal; `all`: no window, for print. `view`: as a journal, or as a conversation."""

    seq: int | None = None
    at: int | None = None
    against: int | None = None
    tab: str = ENTRY
    axis: str = FOLDED
    after: int | None = None
    all: bool = False
    view: str = JOURNAL

    @classmethod
    def of(cls, given: QueryDict) -> Asked:
        at, tab, axis = whole(given.get("at")), given.get("tab", ""), given.get("axis", "")
        view = given.get("view", "")
        return cls(
            seq=whole(given.get("seq")),
            at=at,
            against=whole(given.get("with")),
            tab=tab if tab in TABS else STATE if at is not None else ENTRY,
            axis=axis if axis in AXES else FOLDED,
            after=whole(given.get("after")),
            all="all" in given,
            view=view if view in VIEWS else JOURNAL,
        )

    def at_entry(self, seq: int) -> Asked:
        return replace(self, seq=seq)

    def query(self, **changed: Any) -> str:
        """With its question mark; what goes without saying is left out."""
        new = replace(self, **changed)
        usual = STATE if new.at is not None else ENTRY
        said: dict[str, Any] = {"view": new.view if new.view != JOURNAL else None}
        said |= {"seq": new.seq, "at": new.at, "with": new.against}
        said |= {"tab": new.tab if new.tab != usual else None, "axis": new.axis if new.axis != FOLDED else None}
        said |= {"after": new.after, "all": 1 if new.all else None}
        return "?" + urlencode({name: value for name, value in said.items() if value is not None})
