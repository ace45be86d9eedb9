"""`manage.py run`: a run's journal in a terminal and in a pipe."""

import json
import re

from journal.append import raise_epoch
from runs.commands import locked_run
from runs.engine.drafts import taken_over
from runs.generate import generate
from runs.models import Run, WorkerSession
from runs.short_ids import short_id
from tests.api.conftest import Desk
from tests.cli.manage import AtTerminal, manage, refused


def started(desk: Desk, agent: str, input: str = "null") -> Run:
    manage("start", agent, "--input", input)
    desk.work()
    return Run.objects.latest("created_at")


def test_in_a_pipe_it_is_one_line_an_entry(desk: Desk) -> None:
    run = started(desk, "desk", '{"amount_cents": 1}')
    rows = manage("run", run.id).rows
    assert [row[0] for row in rows] == [str(n) for n in range(1, len(rows) + 1)]
    call = next(row for row in rows if row[3] == "TOOL_CALL")
    assert call[2] == "1" and call[4:8] == ["refund", "keyed", f"{run.id}:1", "succeeded"]
    assert rows[-1][3] == "DONE"


def test_json_is_the_run_of_the_api_and_seq_its_entry(desk: Desk) -> None:
    run = started(desk, "desk", '{"amount_cents": 1}')
    shown = json.loads(manage("run", short_id(run.id), "--json").out)
    assert shown["id"] == str(run.id) and shown["result"] == {"refunded": 1}
    entry = json.loads(manage("run", run.id, "--seq", 1, "--json").out)
    assert entry["kind"] == "START" and entry["body"]["input"] == {"amount_cents": 1}
    assert '"input"' in manage("run", run.id, "--seq", 1).out


def test_a_terminal_shows_steps_and_what_releases_a_pending_one(desk: Desk, at_terminal: AtTerminal) -> None:
    run = started(desk, "desk", '{"amount_cents": 9000}')
    out = at_terminal("run", run.id, NO_COLOR="1").end().out
    assert re.search(rf"step 1 refund keyed awaiting approval {run.id}:1", out)
    assert "refund (step 1) waits for approval" in out and f"manage.py approve {short_id(run.id)} " in out


def test_questions_signals_and_children_name_their_commands(desk: Desk, at_terminal: AtTerminal) -> None:
    for agent, input, command in (("asker", "null", "answer"), ("waiter", "null", "signal"), ("parent", "1", "run")):
        run = started(desk, agent, input)
        run = run if run.parent_id is None else run.parent
        assert f"manage.py {command} r-" in at_terminal("run", run.id, NO_COLOR="1").end().out, agent


def test_a_take_over_shows_as_a_gap(desk: Desk, at_terminal: AtTerminal) -> None:
    run = started(desk, "desk", '{"amount_cents": 9000}')
    lost = WorkerSession.objects.latest("started_at")
    with locked_run(run.id) as held:
        raise_epoch(run.id)
        held.append([taken_over(2, lost.id, lost.id)], "system")
    assert "taken over under epoch 2" in at_terminal("run", run.id, NO_COLOR="1").end().out


def test_following_goes_on_until_the_run_ends(desk: Desk, at_terminal: AtTerminal) -> None:
    run = started(desk, "desk", '{"amount_cents": 9000}')
    terminal = at_terminal("run", run.id, "--follow", NO_COLOR="1")
    terminal.read_until("requested")
    intent = json.loads(manage("intents", "--json").out)["items"][0]
    manage("approve", run.id, intent["seq"], "--digest", intent["digest"])
    with desk.at_work():
        done = terminal.end()
    assert done.code == 0 and "granted by shell:" in done.out and "succeeded. {refunded: 9000}" in done.out
    assert "done" in done.last


def test_following_in_a_pipe_tells_every_entry_once(desk: Desk) -> None:
    run = started(desk, "desk", '{"amount_cents": 1}')
    rows = manage("run", run.id, "--follow").rows
    assert [row[0] for row in rows] == [str(n) for n in range(1, len(rows) + 1)]


def test_a_long_journal_shows_its_newest_entries_unless_all_are_wanted(dsn: str, at_terminal: AtTerminal) -> None:
    generate(1, 260)
    run = Run.objects.get()
    assert len(manage("run", run.id).rows) == 200
    assert len(manage("run", run.id, "--all").rows) == 260
    assert "60 earlier entries" in at_terminal("run", run.id).end().out


def test_what_a_run_says_cannot_act_on_the_terminal(desk: Desk, at_terminal: AtTerminal) -> None:
    manage("start", "desk", "--input", '{"amount_cents": 1, "x": "\\u001b[2J\\u0007\\tz"}')
    run = Run.objects.get()
    for out in (manage("run", run.id).out, at_terminal("run", run.id, NO_COLOR="1").end().out):
        assert "\x1b[2J" not in out and "\x07" not in out


def test_wrong_words_are_refused(desk: Desk) -> None:
    run = started(desk, "desk", '{"amount_cents": 1}')
    assert "no such run" in refused(manage("run", "r-00000000"))
    assert "no entry 99" in refused(manage("run", run.id, "--seq", 99))
    assert "--json" in refused(manage("run", run.id, "--follow", "--json"))
