"""The command line: token, start, resume, release. What a script reads is the last line and the exit code."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from typing import Any

from django.conf import settings

from runs.access import user_of_token
from runs.models import Run, Status
from terminal.command import Utility
from tests.api.conftest import Cast, Desk


@dataclass
class Done:
    returncode: int
    stdout: str
    stderr: str


def manage(*words: str) -> Done:
    """As `manage.py` would do it, without the second that a process takes to begin."""
    code, out, err = 0, StringIO(), StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            Utility(["manage.py", *words]).execute()
        except SystemExit as left:
            code = int(left.code or 0)
    return Done(code, out.getvalue(), err.getvalue())


def last_line(done: Done) -> str:
    return done.stdout.splitlines()[-1]


def one_sentence(done: Done) -> str:
    """What a command says of bad input: exit code 2 and no traceback."""
    assert done.returncode == 2, (done.stdout, done.stderr)
    assert "Traceback" not in done.stderr
    return done.stderr


def test_a_token_is_alone_on_the_last_line_and_works(dsn: str) -> None:
    command = [sys.executable, "manage.py", "token", "create", "--user", "olga", "--role", "operator"]
    made = subprocess.run(command, cwd=settings.BASE_DIR, capture_output=True, text=True, timeout=60, check=False)
    assert made.returncode == 0, made.stderr
    user = user_of_token(made.stdout.splitlines()[-1])
    assert user is not None and user.username == "olga" and user.has_perm("runs.start_run")


def test_bad_words_for_a_token_are_one_sentence_and_exit_2(dsn: str) -> None:
    assert "user name" in one_sentence(manage("token", "create", "--user", "two words"))
    assert "emperor" in one_sentence(manage("token", "create", "--user", "olga", "--role", "emperor"))
    assert "--user" in one_sentence(manage("token", "create"))


def test_start_prints_the_id_alone_on_the_last_line(cast: Cast, desk: Desk) -> None:
    started = manage("start", "desk", "--input", '{"amount_cents": 1}', "--request-key", "k", "--label", "a:b:c")
    assert started.returncode == 0, started.stderr
    run = Run.objects.get(id=last_line(started))
    assert run.labels == {"a": "b:c"} and run.request_key == "k"
    again = manage("start", "desk", "--input", '{"amount_cents": 1}', "--request-key", "k", "--label", "a:b:c")
    assert last_line(again) == str(run.id)
    entry = cast("victor").get(f"/runs/{run.id}/journal").json()["items"][0]
    assert entry["actor"].startswith("shell:")


def test_bad_words_for_a_start_are_one_sentence_and_exit_2(cast: Cast, desk: Desk) -> None:
    assert "nobody" in one_sentence(manage("start", "nobody", "--input", "{}"))
    assert "--input" in one_sentence(manage("start", "desk", "--input", "{not json"))
    assert "NaN" in one_sentence(manage("start", "desk", "--input", "NaN"))
    assert "KEY:VALUE" in one_sentence(manage("start", "desk", "--label", "x"))
    assert "no such release" in one_sentence(manage("start", "desk", "--release", "99"))
    assert not Run.objects.exists()


def test_start_and_wait_prints_the_result_and_tells_the_ending_by_its_exit_code(cast: Cast, desk: Desk) -> None:
    def waited(agent: str, input: Any) -> tuple[int, Any]:
        done = manage("start", agent, "--input", json.dumps(input), "--wait")
        return done.returncode, json.loads(last_line(done))

    with desk.at_work():
        assert waited("desk", {"amount_cents": 1}) == (0, {"refunded": 1})
        code, said = waited("fails", None)
        assert code == 1 and said["status"] == "failed" and "no luck" in json.dumps(said["error"])
        code, said = waited("desk", {"amount_cents": 9_000})
        assert code == 4 and said["status"] == "awaiting_approval" and said["reason"]
        code, said = waited("sleeper", 86_400)
        assert code == 4 and said["status"] == "waiting"


def test_resume_lifts_a_hold_and_says_when_there_is_none(cast: Cast, desk: Desk) -> None:
    run = cast("olga").post("/runs", {"agent": "desk", "input": {"amount_cents": 1}}).json()
    assert "not held" in one_sentence(manage("resume", run["id"]))
    assert "no such run" in one_sentence(manage("resume", "r-00000000"))
    cast("olga").post(f"/runs/{run['id']}/hold", {"reason": "test"})
    resumed = manage("resume", run["name"], "--reason", "over")
    assert resumed.returncode == 0 and last_line(resumed) == run["id"]
    assert Run.objects.get().status == Status.QUEUED


def test_releases_are_listed_with_their_open_runs(cast: Cast, desk: Desk) -> None:
    cast("olga").post("/runs", {"agent": "desk", "input": {"amount_cents": 1}})
    listed = manage("release", "list").stdout.splitlines()
    assert any(line.startswith("desk@1\t1 open\t") for line in listed)
    assert any(line.startswith("post@1\t0 open\t") for line in listed)
