"""The Python of each page as the module that it is: all of its blocks, one after the other."""

import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tests.docs.manual import PAGES, blocks

AGENT = re.compile(r"^(?:@flow\(|\w+ = Agent\().*?name=\"([\w-]+)\"", re.MULTILINE | re.DOTALL)
TEST = re.compile(r"^def (test_\w+)\((\w*)\)", re.MULTILINE)


def source_of(page: str) -> str:
    return "".join(block.text for block in blocks("python") if block.page.name == page)


PAGES_WITH_PYTHON = [page.name for page in PAGES if source_of(page.name)]
AGENTS = {name: page for page in PAGES_WITH_PYTHON for name in AGENT.findall(source_of(page))}
TESTS = [(page, name, given) for page in PAGES_WITH_PYTHON for name, given in TEST.findall(source_of(page))]


def module_name(page: str) -> str:
    return "manual_" + re.sub(r"\W", "_", page.removesuffix(".md").lower())


class Manual(dict[str, ModuleType]):
    """Page to module, imported when it is first asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __missing__(self, page: str) -> ModuleType:
        (self.folder / f"{module_name(page)}.py").write_text(source_of(page))
        self[page] = importlib.import_module(module_name(page))
        return self[page]


@pytest.fixture(scope="session")
def manual(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Manual]:
    manual = Manual(tmp_path_factory.mktemp("manual"))
    sys.path.insert(0, str(manual.folder))
    yield manual
    sys.path.remove(str(manual.folder))
    for page in manual:
        del sys.modules[module_name(page)]
