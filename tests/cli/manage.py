"""Calls of manage.py: in this process where nothing hangs on the terminal, else a real process at a real pty."""

from __future__ import annotations

import os
import pty
import re
import select
import sys
import time
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import Any

from django.core.management import ManagementUtility

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
            ManagementUtility(["manage.py", *map(str, words)]).execute()
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

    pid: int
    fd: int
    out: str = ""
    deadline: float = field(default_factory=lambda: time.monotonic() + 60)

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
        _, status = os.waitpid(self.pid, 0)
        os.close(self.fd)
        return Done(os.waitstatus_to_exitcode(status), self.out)

    def _read(self) -> bool:
        assert time.monotonic() < self.deadline, f"it hangs; there is: {self.out}"
        ready, _, _ = select.select([self.fd], [], [], 1)
        if not ready:
            return True
        try:
            data = os.read(self.fd, 65_536)
        except OSError:  # how a pty says that the other side is gone
            return False
        self.out += data.decode(errors="replace").replace("\r\n", "\n")
        return bool(data)


def at_terminal(*words: Any, columns: int = 120, **environment: str) -> Terminal:
    """Begins `manage.py` at a pty. The test ends it with `end()`."""
    command = [sys.executable, str(ROOT / "manage.py"), *map(str, words)]
    place = {**os.environ, "TERM": "xterm-256color", "COLUMNS": str(columns), "PYTHONPATH": str(ROOT)} | environment
    pid, fd = pty.fork()
    if pid == 0:
        os.chdir(ROOT)
        os.execve(command[0], command, place)
    return Terminal(pid, fd)
