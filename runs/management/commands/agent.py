"""A new agent: `manage.py agent new order-desk`."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import click

from runs.agent_template import CannotWrite, Written, write_agent
from terminal.command import HELP, TerminalCommand, exit_codes
from terminal.screen import Screen


@click.group(context_settings=HELP, epilog=exit_codes())
def words() -> None:
    """Begin an agent of your own."""


@words.command(epilog=exit_codes())
@click.argument("name")
@click.option(
    "--dir", "folder", type=click.Path(file_okay=False, path_type=Path), default=Path(), metavar="DIR",
    help="Where the file is written; the current folder if not given.",
)  # fmt: skip
@click.pass_obj
def new(screen: Screen, /, name: str, folder: Path) -> None:
    """Write an agent and its tests in one file, and say what to do with it. The last line is the file."""
    written = write_agent(name, folder)
    for line in next_steps(written):
        screen.note(line)
    screen.line(str(written.path))


def next_steps(written: Written) -> list[str]:
    folder = written.path.parent
    path = "" if folder in (Path(), Path("."), Path.cwd()) else f"PYTHONPATH={folder.resolve()} "
    given = '{"customer": "ada", "text": "good day"}'
    return [
        "Its tests, in memory, with a crash at every point:",
        f"    python -m pytest {written.path}",
        "The whole installation with it:",
        f"    {path}HOLDFAST_AGENTS={written.module} python manage.py up",
        "A run of it, in a second shell:",
        f"    {path}HOLDFAST_AGENTS={written.module} python manage.py start {written.name} --input '{given}' --wait",
        "What is wrong or risky in it, and whether its tools keep their promises:",
        f"    {path}HOLDFAST_AGENTS={written.module} python manage.py check",
        f"    {path}HOLDFAST_AGENTS={written.module} python manage.py tools check",
    ]


class Command(TerminalCommand):
    help = "Begin an agent of your own."
    words = words
    refusals: ClassVar[tuple[type[Exception], ...]] = (CannotWrite,)
