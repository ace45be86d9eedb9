"""What `manage.py agent new` writes: an agent and its tests in one file."""

from __future__ import annotations

import keyword
import re
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from string import Template

TEMPLATE = Path(__file__).with_name("agent.py-tpl")
LONGEST = 100
NAME = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*")


class CannotWrite(Exception):
    """Why no file was written, in one sentence."""


@dataclass(frozen=True, slots=True)
class Written:
    path: Path
    name: str
    module: str


def write_agent(name: str, folder: Path) -> Written:
    """The new file. Raises CannotWrite."""
    module = name.replace("-", "_")
    if not NAME.fullmatch(name) or len(name) > LONGEST:
        raise CannotWrite(
            f"{name[:60]!r}: an agent's name is small letters and digits with dashes between, like order-desk,"
            f" {LONGEST} characters at most"
        )
    if keyword.iskeyword(module):
        raise CannotWrite(f"{name!r} is a word of Python: choose another name")
    path = folder / f"{module}.py"
    if not path.exists() and find_spec(module) is not None:
        raise CannotWrite(f"{module} is the name of a module that is there already: choose another name")
    text = Template(TEMPLATE.read_text()).substitute(
        name=name, file=path.name, module=module, function=module, capitals=module.upper()
    )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with open(path, "x") as file:
            file.write(text)
    except FileExistsError as error:
        raise CannotWrite(f"{path} is there already: choose another name, or remove it") from error
    except OSError as error:
        raise CannotWrite(f"{path} cannot be written: {error.strerror}") from error
    return Written(path, name, module)
