"""`manage.py completion`: what a shell offers behind the Tab key."""

import functools
import os
import shutil
import subprocess
import sys

import pytest

from runs.models import Run
from runs.short_ids import short_id
from tests.api.conftest import Desk
from tests.cli.manage import ROOT, manage, refused

# What bash does when Tab is pressed behind these words.
PRESSED = """
source /dev/stdin
COMP_WORDS=({words}); COMP_CWORD=$(( ${{#COMP_WORDS[@]}} - 1 ))
_holdfast_completion holdfast
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
shells = pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash here")


@functools.cache
def script(shell: str) -> str:
    command = [sys.executable, str(ROOT / "manage.py"), "completion", shell]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout


def tab(*words: str) -> list[str]:
    quoted = " ".join(f"'{word}'" for word in ("holdfast", *words))
    command = ["bash", "--norc", "-c", PRESSED.format(words=quoted)]
    done = subprocess.run(command, input=script("bash"), capture_output=True, text=True, timeout=60, check=True)
    assert done.stderr == ""
    return done.stdout.split()


@shells
def test_bash_completes_commands_their_verbs_and_options(dsn: str) -> None:
    assert tab("sta") == ["start"]
    assert tab("journal", "ve") == ["verify"]
    assert tab("runs", "--sta") == ["--status"]
    assert tab("worker", "--con") == ["--concurrency"]


@shells
def test_bash_completes_statuses_agents_and_recent_runs(desk: Desk) -> None:
    manage("start", "desk", "--input", '{"amount_cents": 1}')
    assert tab("runs", "--status", "qu") == ["queued", "quarantined"]
    assert "desk" in tab("start", "de")
    assert short_id(Run.objects.get().id) in tab("run", "r-")


@shells
def test_the_function_it_defines_runs_manage_py_from_anywhere(dsn: str) -> None:
    words = "cd /; source /dev/stdin; holdfast runs --limit 0"
    done = subprocess.run(["bash", "-c", words], input=script("bash"), capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and "--limit" in done.stderr


@pytest.mark.parametrize("shell, words", [("zsh", "compdef"), ("fish", "complete --no-files --command holdfast")])
def test_the_other_shells_ask_the_same_way(shell: str, words: str) -> None:
    made = script(shell)
    assert words in made and f"manage.py completion {shell} --answer" in made
    if found := shutil.which(shell):
        flag = "--no-execute" if shell == "fish" else "-n"
        subprocess.run([found, flag], input=made, text=True, check=True, timeout=60)


def test_a_database_that_is_away_offers_nothing_and_writes_nothing() -> None:
    place = {"DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none", "COMP_WORDS": "holdfast run ", "COMP_CWORD": "2"}
    command = [sys.executable, "manage.py", "completion", "bash", "--answer"]
    done = subprocess.run(command, cwd=ROOT, env=os.environ | place, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stdout + done.stderr == ""


def test_an_unknown_shell_is_refused() -> None:
    assert "tcsh" in refused(manage("completion", "tcsh"))
