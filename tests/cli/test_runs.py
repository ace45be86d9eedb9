"""`manage.py runs`: the list, its filters, its pages."""

import json
from typing import Any

from runs.generate import generate
from runs.models import Run, Status
from tests.api.conftest import Desk
from tests.cli.manage import AtTerminal, manage, refused


def test_a_line_a_run_with_tabs_the_newest_first(dsn: str) -> None:
    generate(30, 5)
    done = manage("runs")
    ids = [row[0] for row in done.rows]
    assert ids == [str(run.id) for run in Run.objects.order_by("-id")]
    assert all(len(row) == 6 and row[2] in Status.values for row in done.rows)


def test_json_is_the_list_of_the_api(dsn: str) -> None:
    generate(5, 5)
    listed = json.loads(manage("runs", "--json", "--limit", 3).out)
    assert listed.keys() == {"items", "next_cursor"} and len(listed["items"]) == 3
    rest = json.loads(manage("runs", "--json", "--cursor", listed["next_cursor"]).out)
    assert len(rest["items"]) == 2 and rest["next_cursor"] is None


def test_filters_narrow_the_list(dsn: str) -> None:
    generate(200, 6)
    chosen = Run.objects.filter(request_key__isnull=False).first()
    assert chosen is not None
    by: dict[str, Any] = {
        "--agent": chosen.agent, "--status": chosen.status, "--q": chosen.request_key,
        "--release": f"{chosen.agent}@generated", "--label": f"customer:{chosen.labels['customer']}",
    }  # fmt: skip
    for option, value in by.items():
        rows = manage("runs", option, value, "--limit", 1000).rows
        assert str(chosen.id) in {row[0] for row in rows} and len(rows) < 200, option
    both = manage("runs", "--status", "done", "--status", "failed", "--limit", 1000).rows
    assert {row[2] for row in both} == {"done", "failed"}


def test_children_are_found_by_their_parent(desk: Desk) -> None:
    parent = manage("start", "parent", "--input", "2").last
    desk.work()
    assert {row[1] for row in manage("runs", "--parent", parent).rows} == {"desk@1"}


def test_where_more_follows_stderr_says_how_to_get_it(dsn: str) -> None:
    generate(3, 5)
    assert "--cursor" in manage("runs", "--limit", 2).err
    assert manage("runs").err == ""


def test_an_empty_list_is_no_line_for_a_script(dsn: str) -> None:
    assert manage("runs").out == ""
    assert json.loads(manage("runs", "--json").out) == {"items": [], "next_cursor": None}


def test_a_terminal_gets_a_table_in_its_width_and_no_colour_where_none_is_wanted(
    dsn: str, at_terminal: AtTerminal
) -> None:
    generate(5, 6)
    done = at_terminal("runs", columns=100, NO_COLOR="1").end()
    assert "status" in done.out and "\x1b[" not in done.out
    assert max(len(line) for line in done.out.splitlines()) <= 100
    assert "\x1b[" in at_terminal("runs").end().out


def test_wrong_words_are_refused(dsn: str) -> None:
    assert "--status" in refused(manage("runs", "--status", "lost"))
    assert "cursor" in refused(manage("runs", "--cursor", "x"))
    assert "--limit" in refused(manage("runs", "--limit", "0"))
    assert "KEY:VALUE" in refused(manage("runs", "--label", "x"))


def test_in_a_narrow_window_the_parts_of_a_run_stand_one_below_the_other(dsn: str, at_terminal: AtTerminal) -> None:
    generate(3, 5)
    for columns in (20, 40):
        lines = at_terminal("runs", columns=columns, NO_COLOR="1").end().out.splitlines()
        heads = [line for line in lines if line.startswith("r-")]
        assert len(heads) == 3 and all(len(line.rstrip()) <= columns for line in lines)
        assert any(line.startswith("  status: ") for line in lines)
