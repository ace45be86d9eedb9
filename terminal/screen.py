"""Where a command writes: tables with colours for a person at a terminal, lines with tabs for a script.

rich is loaded at a terminal only: a script does not wait for it.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any, NamedTuple, cast

import click
from django.core.management.base import OutputWrapper

type Advance = Callable[[int], None]


class Styled(NamedTuple):
    """A text with a rich style ("bold red") for a terminal."""

    text: str
    style: str

    def __str__(self) -> str:
        return self.text


type Cell = str | Styled | int | None


class Column(NamedTuple):
    """`keep`: never wrapped or cut, e.g. an id that will be copied."""

    title: str
    keep: bool = False
    right: bool = False


def inert(text: str) -> str:
    """The same text with everything that a terminal could act on written as an escape."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


class Screen:
    """`terminal`: stdout is one. Nothing that is written by a run can move a cursor or forge a line."""

    def __init__(self, out: OutputWrapper, err: OutputWrapper, *, colour: bool = True) -> None:
        self.out, self.err = out, err
        self.terminal = _is_terminal(out)
        self.colour = colour
        self._console: Any = None

    @property
    def interactive(self) -> bool:
        """Somebody can be asked."""
        return self.terminal and sys.stdin.isatty()

    def line(self, text: str = "") -> None:
        """One line, as it is, for the script that reads it."""
        self.out.write(text)

    def flush(self) -> None:
        self.out.flush()

    def note(self, text: str) -> None:
        """What is said beside the result: stderr."""
        self.err.write(text, str)  # not in the colour of an error

    def json(self, document: Any) -> None:
        """One document of strict JSON; indented for a person."""
        self.line(json.dumps(document, allow_nan=False, indent=2 if self.terminal else None))

    def say(self, *cells: Cell, cut: bool = False) -> None:
        """A line of a report: styled at a terminal (`cut`: at its edge), with tabs between its parts elsewhere."""
        if not self.terminal:
            self.line("\t".join(_text(cell) for cell in cells))
            return
        self.console.print(self.styled(*cells), no_wrap=cut or None, overflow="ellipsis" if cut else None)

    def styled(self, *cells: Cell) -> Any:
        """As rich draws them, one space between; for a terminal only."""
        from rich.text import Text

        return Text(" ").join(_rich(cell) for cell in cells)

    def table(self, columns: Sequence[Column], rows: Iterable[Sequence[Cell]], empty: str = "") -> None:
        """For a script one line a row without a head; for a person a table as wide as the window, or `empty`. In a
        window too narrow for it the parts of a row stand one below the other."""
        if not self.terminal:
            for row in rows:
                self.line("\t".join(_text(cell) for cell in row))
            return
        found = list(rows)
        if found and needed(columns, found) > self.console.width:
            self._records(columns, found)
            return
        from rich import box
        from rich.table import Table

        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
        for column in columns:
            justify = "right" if column.right else "left"
            table.add_column(column.title, no_wrap=column.keep, overflow="fold", justify=justify)  # type: ignore[arg-type]
        for row in found:
            table.add_row(*(_rich(cell) for cell in row))
        if found:
            self.console.print(table)
        elif empty:
            self.line(empty)

    def _records(self, columns: Sequence[Column], rows: Sequence[Sequence[Cell]]) -> None:
        """For a window too narrow for the table: a thing's parts one below the other."""
        for row in rows:
            self.console.print(_rich(row[0]))
            for column, cell in zip(columns[1:], row[1:], strict=True):
                if _text(cell):
                    self.console.print(self.styled(f"  {column.title}:" if column.title else " ", cell))

    def sure(self, question: str) -> bool:
        """A typed y; anything else is no. Raises click.Abort when nobody can answer."""
        answer = click.prompt(f"{question} [y/N]", default="n", show_default=False, err=True)
        return str(answer).strip().lower() in ("y", "yes")

    @contextmanager
    def progress(self, what: str, total: int | None = None) -> Iterator[Advance]:
        """How far it is, on stderr and at a terminal only. Yields what is called with the count just done."""
        if not _is_terminal(self.err):
            yield lambda count: None
            return
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        console = Console(file=_stream(self.err), no_color=True if self._plain else None)
        parts = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*parts, console=console, transient=True) as bar:
            task = bar.add_task(what, total=total)
            yield lambda count: bar.advance(task, count)

    @property
    def _plain(self) -> bool:
        return not self.colour or bool(os.environ.get("NO_COLOR"))

    @property
    def console(self) -> Any:
        """rich's, on this stdout."""
        if self._console is None:
            from rich.console import Console

            plain: dict[str, Any] = {"no_color": True, "color_system": None} if self._plain else {}
            self._console = Console(file=_stream(self.out), highlight=False, markup=False, emoji=False, **plain)
        return self._console


NARROWEST = 10  # characters of a column whose words may wrap


def needed(columns: Sequence[Column], rows: Sequence[Sequence[Cell]]) -> int:
    """The width of a window in which a table of these can be read."""
    widths = [max(len(column.title), *(len(_text(row[n])) for row in rows)) for n, column in enumerate(columns)]
    least = (width if column.keep else min(width, NARROWEST) for column, width in zip(columns, widths, strict=True))
    return sum(least) + 3 * (len(columns) - 1)


def _is_terminal(stream: OutputWrapper) -> bool:
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def _stream(wrapper: OutputWrapper) -> IO[str]:
    return cast(IO[str], wrapper._out)


def _text(cell: Cell) -> str:
    return "" if cell is None else inert(str(cell))


def _rich(cell: Cell) -> Any:
    from rich.text import Text

    return Text(_text(cell), style=cell.style if isinstance(cell, Styled) else "")
