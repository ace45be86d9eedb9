"""`agent new` writes an agent whose tests pass at once; `tools check` says what its tools keep."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from runs.registry import agents
from tests.rig.ledger import ROOT


def new(*words: str) -> str:
    out = io.StringIO()
    call_command("agent", "new", *words, stdout=out, stderr=io.StringIO())
    return out.getvalue().splitlines()[-1]


@pytest.mark.slow
def test_its_tests_pass_outside_of_the_project_and_without_django(tmp_path: Path) -> None:
    path = new("order-desk", "--dir", str(tmp_path))
    environment = {name: value for name, value in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"}
    command = [sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider", path]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True
    )
    assert done.returncode == 0 and "3 passed" in done.stdout, done.stdout + done.stderr


@pytest.mark.slow
def test_its_file_is_as_clean_as_ours(tmp_path: Path) -> None:
    path = new("order-desk", "--dir", str(tmp_path))
    for words in (["ruff", "check"], ["ruff", "format", "--check"], ["mypy", "--strict"]):
        done = subprocess.run([sys.executable, "-m", *words, path], cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


def test_a_file_that_is_there_is_left_alone(tmp_path: Path) -> None:
    path = Path(new("desk", "--dir", str(tmp_path / "new")))
    path.write_text("mine")
    with pytest.raises(CommandError, match="is there already"):
        new("desk", "--dir", str(tmp_path / "new"))
    assert path.read_text() == "mine"


@pytest.mark.parametrize("name", ["Order", "order desk", "order_desk", "class", "json", "runs", "1st", ""])
def test_a_name_that_cannot_be_one_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(CommandError):
        new(name, "--dir", str(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_its_tools_keep_their_promises(tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    new("letter-desk", "--dir", str(tmp_path))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("LETTER_DESK_BOX", str(tmp_path / "box"))
    settings.HOLDFAST_AGENTS = ("letter_desk",)
    agents.cache_clear()
    try:
        out = io.StringIO()
        call_command("tools", "check", "send_letter", "--json", stdout=out)
        assert {promise["state"] for promise in json.loads(out.getvalue())} == {"kept"}
        assert len(list((tmp_path / "box").iterdir())) == 1
        with pytest.raises(CommandError, match="did you mean send_letter"):
            call_command("tools", "check", "send_leter")
    finally:
        agents.cache_clear()


def test_all_that_agents_import_can_be_imported_without_django() -> None:
    words = "from runs.sdk import *; from runs.sdk.models import *; import runs.testing, demo.agents.refund_desk; start"
    environment = {name: value for name, value in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"}
    done = subprocess.run(
        [sys.executable, "-c", words], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
