"""What there is has a place in the manual, under its own name."""

import re
from typing import Any

import click
import pytest
from django.core.management import BaseCommand, get_commands, load_command_class

from config.environment import ROOT
from journal.entries import Kind
from recovery.commands import VERDICTS
from runs import sdk
from runs.access import ROLES
from runs.agents import FunctionModel
from runs.models import Status
from runs.pages.controls import CONTROLS
from runs.run_view import RunView
from runs.tools import EFFECTS, ToolContext, tool
from tests.docs.manual import PAGES, blocks

DOCS = ROOT / "docs"
OURS = ("config", "recovery", "runs", "journal", "demo")
FOR_WRITERS = (
    "writing-agents.md",
    "waiting.md",
    "limits.md",
    "choosing-an-effect-class.md",
    "testing-agents.md",
)
BETWEEN_PROGRAMS = {"--answer"}  # what a shell's completion asks
INTERNAL = {"prepare", "payments", "demo"}  # run by `up`; `prepare` also by who deploys


def table_of(page: str, heading: str) -> str:
    """The text below a heading, to the next one."""
    found = re.search(rf"^#+ {re.escape(heading)}\n(.*?)(?=^#+ |\Z)", (DOCS / page).read_text(), re.M | re.S)
    assert found is not None, f"{page} has no heading {heading!r}"
    return found[1]


def unnamed(names: object, text: str) -> list[str]:
    return [str(name) for name in names if f"`{name}`" not in text]  # type: ignore[attr-defined]


def test_every_entry_kind_is_explained() -> None:
    assert unnamed(Kind, table_of("concepts.md", "Entry kinds")) == []


def test_every_status_is_explained() -> None:
    assert unnamed(Status.values, table_of("operating.md", "Statuses")) == []


def test_every_effect_class_is_explained() -> None:
    assert unnamed(EFFECTS, table_of("concepts.md", "Effect classes")) == []


def test_every_verdict_and_control_is_explained() -> None:
    assert unnamed(VERDICTS, table_of("operating.md", "Reconciling")) == []
    controls = table_of("operating.md", "Cancel, hold, resume, release")
    assert [verb for verb in CONTROLS if f"**{verb.capitalize()}**" not in controls] == []


def test_every_role_is_explained() -> None:
    assert [role for role in ROLES if f"| {role} |" not in table_of("deploying.md", "Roles and tokens")] == []


def test_every_environment_variable_is_explained() -> None:
    text = (ROOT / "config" / "environment.py").read_text() + (ROOT / "config" / "settings.py").read_text()
    read = set(re.findall(r'"(HOLDFAST_[A-Z_]+|[A-Z]+_URL|SECRET_KEY)"', text))
    assert (
        unnamed(sorted(read - {"HOLDFAST_PROCESS", "HOLDFAST_REDACT"}), table_of("deploying.md", "Environment")) == []
    )


def test_every_word_of_the_sdk_is_explained() -> None:
    guide = "".join((DOCS / page).read_text() for page in FOR_WRITERS)
    assert [name for name in (*sdk.__all__, FunctionModel.__name__) if not re.search(rf"\b{name}\b", guide)] == []
    options = table_of("writing-agents.md", "Tools")
    assert unnamed(tool.__kwdefaults__ or (), options) == []
    assert unnamed(ToolContext.__dataclass_fields__, options) == []
    seen = [name for name, member in vars(RunView).items() if not name.startswith("_") and member is not None]
    assert [name for name in seen if f"`{name}" not in table_of("writing-agents.md", "Flows")] == []


def test_every_metric_is_explained() -> None:
    sources = [(ROOT / "config" / "metrics.py").read_text(), (ROOT / "runs" / "totals.py").read_text()]
    names = {name for source in sources for name in re.findall(r'"(holdfast_[a-z_]+)"', source)}
    explained = set(re.findall(r"`(holdfast_[a-z_]+)", table_of("api.md", "Metrics")))
    assert names and {name for name in names if name not in explained and f"{name}_total" not in explained} == set()
    used = set(re.findall(r"`(holdfast_[a-z_]+)", "".join(page.read_text() for page in PAGES)))
    assert used - explained == set()


def test_every_command_is_named() -> None:
    manual = "".join(page.read_text() for page in PAGES)
    ours = [name for name, app in get_commands().items() if app in OURS and name not in INTERNAL]
    assert [name for name in ours if not re.search(rf"(manage\.py |`){name}\b", manual)] == []


def options_of(command: Any) -> set[str]:
    """Its long options: click's, or argparse's without those that every command of Django has."""
    if isinstance(command, click.Group):
        return set().union(*(options_of(each) for each in command.commands.values()))
    if isinstance(command, click.Command):
        given = {name for option in command.params if isinstance(option, click.Option) for name in option.opts}
    else:
        everywhere = BaseCommand().create_parser("manage.py", "any")._option_string_actions
        given = set(command.create_parser("manage.py", "any")._option_string_actions) - set(everywhere)
    return {name for name in given if name.startswith("--")}


@pytest.mark.parametrize("name", [name for name, app in get_commands().items() if app in OURS and name not in INTERNAL])
def test_every_option_is_named(name: str) -> None:
    command = load_command_class(get_commands()[name], name)
    manual = "".join(page.read_text() for page in PAGES)
    options = options_of(getattr(command, "words", command)) - BETWEEN_PROGRAMS
    assert [option for option in sorted(options) if option not in manual] == []


@pytest.mark.parametrize("block", blocks("sh"), ids=str)
def test_commands_in_examples_exist(block) -> None:  # type: ignore[no-untyped-def]
    used = set(re.findall(r"manage\.py (\w+)", block.text))
    assert used <= set(get_commands())


def test_nothing_names_a_machine() -> None:
    """Paths of the machine that a page was written on have no place in it."""
    named = [page.name for page in PAGES if re.search(r"/(work|root|home/\w+)/", page.read_text())]
    assert named == []
