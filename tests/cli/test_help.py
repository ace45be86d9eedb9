"""Every command says what it does, how it ends, and what is wrong with the words it was given."""

import os
import signal
import subprocess
import sys

import pytest
from django.core.management import CommandError, call_command, get_commands, load_command_class
from psycopg.conninfo import make_conninfo

from runs.generate import generate
from terminal.command import TerminalCommand
from tests.api.conftest import Desk
from tests.cli.manage import ROOT, manage, refused

OURS = ("config", "journal", "recovery", "runs")


def ours() -> dict[str, TerminalCommand]:
    found = {name: load_command_class(app, name) for name, app in get_commands().items() if app in OURS}
    return {name: command for name, command in found.items() if isinstance(command, TerminalCommand)}


COMMANDS = ours()


def test_they_are_all_here() -> None:
    wanted = {
        "agents", "answer", "approve", "cancel", "chaos", "completion", "doctor", "gate", "generate", "hold", "intents",
        "journal", "note", "reconcile", "release", "resume", "retry", "run", "runs", "scope", "signal", "start",
        "token", "unquarantine", "workers",
    }  # fmt: skip
    assert wanted <= COMMANDS.keys()


@pytest.mark.parametrize("name", COMMANDS)
def test_help_says_what_it_does_and_how_it_ends(name: str) -> None:
    shown = manage(name, "--help")
    assert shown.code == 0 and shown.out.startswith(f"Usage: manage.py {name}")
    assert "Exit codes: 0 " in shown.out.replace("\n  ", " ")
    assert shown.out == manage(name, "-h").out
    assert manage("help", name).out.strip() == shown.out.strip()
    assert COMMANDS[name].help.endswith(".")
    assert "<=None" not in shown.out and "None<=" not in shown.out


@pytest.mark.parametrize("name", COMMANDS)
def test_an_unknown_option_is_named_with_the_way_to_the_help(name: str) -> None:
    said = refused(manage(name, "--no-such-option"))
    assert "--no-such-option" in said and f"manage.py {name} --help" in said


def test_call_command_reads_the_same_words() -> None:
    with pytest.raises(CommandError, match="--no-such-option"):
        call_command("runs", "--no-such-option")


def test_django_s_own_options_are_taken_wherever_they_stand(dsn: str) -> None:
    assert manage("runs", "--no-color", "--limit", "1", "--verbosity", "0").code == 0
    assert manage("runs", "--settings=config.settings").code == 0


def in_a_process(**environment: str) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "manage.py", "runs"]
    return subprocess.run(
        words, cwd=ROOT, env=os.environ | environment, capture_output=True, text=True, timeout=90, check=False
    )


def test_a_database_that_is_away_is_one_sentence() -> None:
    done = in_a_process(DATABASE_URL="postgresql://nobody@127.0.0.1:1/none")
    assert done.returncode == 1 and "the database does not answer" in done.stderr and "Traceback" not in done.stderr


def test_a_database_without_tables_names_the_command_that_makes_them(postgres: dict[str, str]) -> None:
    done = in_a_process(DATABASE_URL=make_conninfo("", **postgres, dbname="postgres"))
    assert done.returncode == 2 and "manage.py prepare" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize("rows", [1, 500])  # what is written at once, and what is more than a pipe holds
def test_a_reader_that_has_enough_ends_it_quietly_and_as_no_failure(dsn: str, rows: int) -> None:
    generate(rows, 5)
    command = f"{sys.executable} manage.py runs --limit 500 | true; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.stderr) == ("141\n", "")


def test_a_command_that_does_not_exist_is_refused() -> None:
    assert "Did you mean runs?" in refused(manage("rums"))
    assert "Unknown command" in refused(manage("help", "no-such-command"))


@pytest.mark.parametrize("words", [["worker", "--help"], ["sweep", "--help"]])
def test_workers_and_sweepers_never_load_what_draws(words: list[str]) -> None:
    command = [sys.executable, "-X", "importtime", "manage.py", *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    assert "django" in done.stderr and " rich" not in done.stderr


def test_a_script_never_loads_what_draws(dsn: str) -> None:
    command = [sys.executable, "-X", "importtime", "manage.py", "runs"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    assert " rich" not in done.stderr


def test_ctrl_c_while_a_command_loads_is_130_without_a_traceback(dsn: str) -> None:
    words = [sys.executable, "-v", "manage.py", "runs"]  # says what it imports
    with subprocess.Popen(words, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        said = next(line for line in process.stderr if "django.core.exceptions" in line)
        process.send_signal(signal.SIGINT)
        said = process.stderr.read()
    assert process.returncode == 130 and "Traceback" not in said


def test_what_the_encoding_of_a_terminal_lacks_is_written_as_an_escape(desk: Desk) -> None:
    run = manage("start", "desk", "--label", "town:Köln").last
    done = in_a_process(PYTHONIOENCODING="ascii")
    assert done.returncode == 0 and run in done.stdout and "K\\xf6ln" in done.stdout, done.stderr
