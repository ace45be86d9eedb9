"""`manage.py start`: what it prints last, how it ends, and what a person sees while it runs."""

import json
import re
from pathlib import Path

import pytest

from runs.models import Run, Status
from tests.api.conftest import Desk
from tests.cli.manage import AtTerminal, manage, refused

SMALL = '{"amount_cents": 1}'
LARGE = '{"amount_cents": 9000}'


def test_the_id_stands_alone_on_the_last_line(desk: Desk) -> None:
    done = manage("start", "desk", "--input", SMALL)
    assert done.code == 0 and done.last == str(Run.objects.get().id)


def test_every_option_reaches_the_run(desk: Desk) -> None:
    words = ("--request-key", "k", "--label", "a:b:c", "--label", "d:e", "--release", "1", "--deadline", "60")
    manage("start", "desk", "--input", SMALL, *words, "--priority", "3")
    run = Run.objects.get()
    assert run.labels == {"a": "b:c", "d": "e"} and run.request_key == "k" and run.priority == 3
    assert run.deadline_at is not None and 0 < (run.deadline_at - run.created_at).total_seconds() <= 61


def test_input_comes_from_a_file_or_from_standard_input(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "input.json").write_text(SMALL)
    for words, stdin in ((["--input", f"@{tmp_path}/input.json"], ""), (["--input", "-"], SMALL)):
        with desk.at_work():
            done = manage("start", "desk", *words, "--wait", stdin=stdin)
        assert done.code == 0 and json.loads(done.last) == {"refunded": 1}


@pytest.mark.parametrize(
    "words, said",
    [
        (["nobody"], "nobody"),
        (["desk", "--input", "{not json"], "--input"),
        (["desk", "--input", "1e999"], "not a JSON value"),
        (["desk", "--input", "@/no/such/file"], "--input"),
        (["desk", "--label", "x"], "KEY:VALUE"),
        (["desk", "--release", "99"], "no such release"),
        (["desk", "--priority", "10"], "--priority"),
        (["desk", "--deadline", "0"], "--deadline"),
        (["desk", "--no-such-option"], "--no-such-option"),
        ([], "AGENT"),
    ],
)
def test_wrong_words_are_one_sentence_and_exit_2(desk: Desk, words: list[str], said: str) -> None:
    assert said in refused(manage("start", *words))
    assert not Run.objects.exists()


def test_a_second_run_under_a_taken_key_is_refused(desk: Desk) -> None:
    manage("start", "desk", "--input", SMALL, "--request-key", "k")
    assert "other content" in refused(manage("start", "desk", "--input", LARGE, "--request-key", "k"))


def test_waiting_ends_with_the_result_and_its_exit_code(desk: Desk) -> None:
    with desk.at_work():
        assert json.loads(manage("start", "desk", "--input", SMALL, "--wait").last) == {"refunded": 1}
        failed = manage("start", "fails", "--wait")
        parked = manage("start", "desk", "--input", LARGE, "--wait")
    assert failed.code == 1 and json.loads(failed.last)["status"] == "failed"
    assert parked.code == 4 and json.loads(parked.last)["status"] == "awaiting_approval"


def test_at_a_terminal_each_step_is_shown_and_the_result_comes_last(desk: Desk, at_terminal: AtTerminal) -> None:
    with desk.at_work():
        done = at_terminal("start", "desk", "--input", SMALL, "--wait", NO_COLOR="1").end()
    assert done.code == 0, done.out
    assert re.search(r"TOOL_CALL +step 1 refund\(amount_cents=1\)", done.out)
    assert re.search(r"OBS +step 1 refund succeeded\. \{refunded: 1\}", done.out)
    assert json.loads(done.last) == {"refunded": 1}


def test_at_a_terminal_a_parked_run_names_the_command_that_releases_it(desk: Desk, at_terminal: AtTerminal) -> None:
    with desk.at_work():
        done = at_terminal("start", "desk", "--input", LARGE, "--wait", NO_COLOR="1").end()
    assert done.code == 4
    assert (
        "refund (step 1) waits for approval" in done.out
        and "anew" not in done.out
        and "manage.py approve r-" in done.out
    )


def test_ctrl_c_leaves_the_run_running_and_says_how_to_look_at_it(desk: Desk, at_terminal: AtTerminal) -> None:
    terminal = at_terminal("start", "desk", "--input", SMALL, "--wait")
    terminal.read_until("START")
    terminal.type("\x03")
    done = terminal.end()
    assert done.code == 130 and "manage.py run r-" in done.out and "Traceback" not in done.out
    assert Run.objects.get().status == Status.QUEUED


def test_an_input_that_the_agent_does_not_take_is_told_by_its_path(desk: Desk) -> None:
    assert "input.1: It is not of type" in refused(manage("start", "typed", "--input", '[1, "two"]'))
    assert not Run.objects.exists()
