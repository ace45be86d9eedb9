"""Calls of manage.py: in this process where nothing hangs on the terminal, else a real process at a real pty."""

from __future__ import annotations

import os
import pty
import re
import select
import sys
import time
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import Any, Protocol

from terminal.command import Utility
from tests.rig.fleet import Nursery

ROOT = Path(__file__).resolve().parents[2]
CURSOR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


@dataclass
class Done:
    code: int
    out: str
    err: str = ""

    @property
    def last(self) -> str:
        """The last line, without what moved the cursor there."""
        return CURSOR.sub("", self.out.splitlines()[-1])

    @property
    def rows(self) -> list[list[str]]:
        return [line.split("\t") for line in self.out.splitlines()]


def manage(*words: Any, stdin: str = "") -> Done:
    """As a script would call it."""
    code, out, err, before = 0, StringIO(), StringIO(), sys.stdin
    sys.stdin = StringIO(stdin)
    with redirect_stdout(out), redirect_stderr(err):
        try:
            Utility(["manage.py", *map(str, words)]).execute()
        except SystemExit as left:
            code = int(left.code or 0)
        finally:
            sys.stdin = before
    return Done(code, out.getvalue(), err.getvalue())


def refused(done: Done) -> str:
    """What a command says when it refuses: exit 2, a sentence on stderr, no traceback, nothing on stdout."""
    assert done.code == 2, (done.out, done.err)
    assert "Traceback" not in done.err and done.out == ""
    return done.err


@dataclass
class Terminal:
    """A process of manage.py at a terminal of its own; `out` is what it has drawn so far."""

    nursery: Nursery
    pid: int
    fd: int
    slave: int
    out: str = ""
    deadline: float = field(default_factory=lambda: time.monotonic() + 90)

    def read_until(self, wanted: str) -> str:
        while wanted not in self.out:
            assert self._read(), f"{wanted!r} never came; there is: {self.out}"
        return self.out

    def type(self, text: str) -> None:
        os.write(self.fd, text.encode())

    def end(self) -> Done:
        """Waits for its end."""
        while self._read():
            pass
        os.close(self.fd)
        os.close(self.slave)
        return Done(self.nursery.codes[self.pid], self.out)

    def _read(self) -> bool:
        """Whether there may be more. That the slave is open here too keeps what was drawn until it is read."""
        assert time.monotonic() < self.deadline, f"it hangs; there is: {self.out}"
        gone = self.pid in self.nursery.codes
        if not select.select([self.fd], [], [], 0 if gone else 0.1)[0]:
            return not gone
        self.out += os.read(self.fd, 65_536).decode(errors="replace").replace("\r\n", "\n")
        return True


class AtTerminal(Protocol):
    def __call__(self, *words: object, columns: int = 120, **environment: str) -> Terminal: ...


def begin(nursery: Nursery, words: Sequence[object], columns: int, environment: dict[str, str]) -> Terminal:
    """`manage.py` at a pty. The test ends it with `end()`."""
    fd, slave = pty.openpty()
    place = {**os.environ, "TERM": "xterm-256color", "COLUMNS": str(columns)} | environment
    pid = nursery.bear([str(word) for word in words], place, Path(os.ttyname(slave)), [])
    return Terminal(nursery, pid, fd, slave)
