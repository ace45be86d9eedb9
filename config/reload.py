"""Development: which source files the agents are made of, and whether one has changed."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Iterator
from pathlib import Path


class SourceWatch:
    """Looks at the modules' own files, those of their packages and those beside them."""

    def __init__(self, modules: Iterable[str]) -> None:
        self.modules = tuple(modules)
        self._seen = self._look()

    def changed(self) -> list[Path]:
        """Files that are new, gone or different since the last look."""
        now = self._look()
        before, self._seen = self._seen, now
        return sorted(path for path in before.keys() | now.keys() if before.get(path) != now.get(path))

    def _look(self) -> dict[Path, tuple[int, int]]:
        found = {}
        for path in {path for name in self.modules for path in sources_of(name)}:
            try:
                status = path.stat()
            except OSError:  # an editor replaces it in this very moment
                continue
            found[path] = (status.st_mtime_ns, status.st_size)
        return found


def sources_of(module: str) -> Iterator[Path]:
    try:
        spec = importlib.util.find_spec(module)
    except (ImportError, ValueError, SyntaxError):
        return
    if spec is None:
        return
    for folder in spec.submodule_search_locations or ():
        yield from Path(folder).rglob("*.py")
    if spec.origin and not spec.submodule_search_locations:
        yield from Path(spec.origin).parent.glob("*.py")
