"""What the commands about runs share: how runs, JSON and labels are written, and how a changed run is told."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from math import isfinite
from pathlib import Path
from typing import Any, ClassVar
from uuid import UUID

import click
from click.shell_completion import CompletionItem
from django.utils import timezone

from journal.errors import JournalError
from runs.access import shell_actor
from runs.audit import through
from runs.errors import RunsError
from runs.models import Release, Run, Status
from runs.queries import find_run
from runs.registry import AgentsUnusable
from runs.rest.answers import run_detail
from runs.short_ids import short_id
from terminal.command import HELP, TerminalCommand, exit_codes
from terminal.numbers import Whole
from terminal.screen import Screen, Styled

RECENT = 20  # runs that completion offers
MOST_DIGITS = 4300  # that Python reads by itself
STYLES = {
    Status.RUNNING: "cyan", Status.DONE: "green", Status.FAILED: "red", Status.CANCELLED: "dim",
    Status.AWAITING_APPROVAL: "yellow", Status.NEEDS_RECONCILIATION: "bold yellow", Status.QUARANTINED: "bold red",
    Status.HELD: "magenta", Status.WAITING_FOR_VERSION: "magenta",
}  # fmt: skip


class RunsCommand(TerminalCommand):
    refusals: ClassVar[tuple[type[Exception], ...]] = (RunsError, JournalError, AgentsUnusable)

    def handle(self, *args: Any, **options: Any) -> None:
        with through("shell"):
            super().handle(*args, **options)


class RunParam(click.ParamType[str]):
    name = "run"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        rows = Run.objects.order_by("-id").only("id", "agent", "status")[:RECENT]
        names = [(short_id(row.id), f"{row.agent}, {row.status}") for row in rows]
        return [CompletionItem(name, help=about) for name, about in names if name.startswith(incomplete)]


class JournalParam(RunParam):
    """The id of a run. An imported journal has no run beside it, and is named by its whole UUID."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return value if isinstance(value, UUID) else UUID(value)
        except ValueError:
            return find_run(value).id


class AgentParam(click.ParamType[str]):
    name = "agent"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        names = Release.objects.order_by("agent").values_list("agent", flat=True).distinct()
        return [CompletionItem(name) for name in names if name.startswith(incomplete)]


class JsonParam(click.ParamType[Any]):
    """JSON itself, @FILE, or - for standard input."""

    name = "json"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return strict_value(self.text_of(value))
        except OSError as error:
            self.fail(f"{value[1:] or '@'!r} cannot be read: {error.strerror}", param, ctx)
        except UnicodeDecodeError:
            self.fail("this is not JSON: it is not UTF-8 text", param, ctx)
        except RecursionError:
            self.fail("this is nested too deep", param, ctx)
        except ValueError as error:
            self.fail(f"this is not JSON: {error}", param, ctx)

    @staticmethod
    def text_of(value: str) -> str:
        if value == "-":
            return sys.stdin.read()
        return Path(value[1:]).read_text(encoding="utf-8") if value.startswith("@") else value


class LabelParam(click.ParamType[tuple[str, str]]):
    name = "label"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        key, colon, text = str(value).partition(":")
        if not colon or not key:
            self.fail(f"Write a label as KEY:VALUE, not {value!r}", param, ctx)
        return key, text


def strict_value(text: str) -> Any:
    """Raises ValueError or RecursionError for what is not JSON, NaN and infinities among it."""
    return json.loads(text, parse_constant=refuse_constant, parse_float=finite, parse_int=whole)


def refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON value")


def finite(text: str) -> float:
    number = float(text)
    return number if isfinite(number) else refuse_constant(text)


def whole(digits: str) -> int:
    if len(digits) > MOST_DIGITS:
        raise ValueError(f"it has a number of more than {MOST_DIGITS} digits")
    return int(digits)


the_run = click.argument("run", type=RunParam())
the_seq = click.argument("seq", type=Whole(1))
as_json = click.option("--json", "as_json", is_flag=True, help="Strict JSON, in the API's shape.")


def reason_option(default: str | None = None) -> Callable[[Any], Any]:
    said = "It is written to the journal beside your name."
    if default is None:
        return click.option("--reason", required=True, help=said)  # a default of None would count as given
    return click.option("--reason", default=default, show_default=True, help=said)


# -- telling ----------------------------------------------------------------------------------------------------------


def tell_run(screen: Screen, run: Run, as_json: bool) -> None:
    """What became of the run; the last line is its id, or with --json the whole is the run as the API shows it."""
    if as_json:
        screen.json(run_detail(run).model_dump(mode="json"))
        return
    screen.line(f"{run.status}: {run.reason}" if run.reason else str(run.status))
    screen.line(str(run.id))


def status_cell(status: str) -> Styled:
    return Styled(status, STYLES.get(Status(status), ""))


def when(screen: Screen, at: datetime | None) -> str:
    """How long ago for a person, ISO 8601 in UTC for a script."""
    if at is None:
        return ""
    return span((timezone.now() - at).total_seconds()) if screen.terminal else iso(at)


def iso(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def span(seconds: float) -> str:
    """At most two parts: 12 s, 3 min 20 s, 2 h 5 min, 3 d 4 h."""
    sign, seconds = ("in " if seconds < 0 else ""), abs(seconds)
    if seconds < 1:
        return f"{sign}{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{sign}{seconds:.1f} s" if seconds < 10 else f"{sign}{seconds:.0f} s"
    for size, unit, small, part in ((86_400, "d", 3_600, "h"), (3_600, "h", 60, "min"), (60, "min", 1, "s")):
        if seconds >= size:
            rest = int(seconds % size // small)
            return f"{sign}{int(seconds // size)} {unit}" + (f" {rest} {part}" if rest else "")
    raise AssertionError


# -- changing ---------------------------------------------------------------------------------------------------------


def control_words(name: str, command: Callable[..., Run], help: str, reason: str | None = None) -> click.Command:
    """The words of a command that does one thing to one run, with a reason."""

    @click.command(name, help=help, context_settings=HELP, epilog=exit_codes())
    @the_run
    @reason_option(reason)
    @as_json
    @click.pass_obj
    def words(screen: Screen, /, run: str, reason: str, as_json: bool) -> None:
        changed = command(run_id=find_run(run).id, reason=reason, actor=shell_actor())
        tell_run(screen, changed, as_json)

    return words
