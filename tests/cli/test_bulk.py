"""`manage.py bulk`, and `manage.py runs --query`."""

import json

from recovery.bulk import carry_out_bulk
from runs.generate import generate
from runs.models import BulkAct, Run
from tests.cli.manage import AtTerminal, manage, refused
from tests.rig.ledger import wait_until

WHY = ("--reason", "the desk is closed")


def carried() -> None:
    wait_until(lambda: not carry_out_bulk(lambda: False) and not BulkAct.objects.filter(ended_at=None), "it ends")


def test_runs_are_listed_by_a_query(dsn: str) -> None:
    generate(60, 6)
    rows = manage("runs", "--query", "status:open -agent:card-dispute", "--limit", 1000).rows
    assert {row[0] for row in rows} == {
        str(run.id) for run in Run.objects.exclude(agent="card-dispute").filter(ended_at=None)
    }
    assert "Did you mean held?" in refused(manage("runs", "--query", "status:hedl"))


def test_a_dry_run_counts_by_status_and_writes_nothing(dsn: str) -> None:
    generate(200, 6)
    held = Run.objects.filter(status="held").count()
    told = json.loads(manage("bulk", "resume", "", "--dry-run", "--json").out)
    assert (told["acts"], told["skips"]) == (held, 200 - held) and held
    rows = {row[0]: row[1] for row in manage("bulk", "resume", "", "--dry-run").rows}
    assert rows["held"] == str(held) and rows["done"] == "0"
    assert BulkAct.objects.count() == 0


def test_a_script_says_yes_and_gets_the_acts_id(dsn: str) -> None:
    generate(60, 6)
    assert "--yes" in refused(manage("bulk", "hold", "status:queued", *WHY))
    assert "reason" in refused(manage("bulk", "hold", "status:open", "--yes"))
    done = manage("bulk", "hold", "status:open -status:held -has:intent", *WHY, "--yes")
    act = BulkAct.objects.get()
    assert done.code == 0 and done.last == str(act.pk) and "to do" in done.out
    assert act.door == "shell" and act.actor.startswith("shell:")
    carried()
    (row,) = manage("bulk", "list").rows
    assert row[:3] == [done.last, "hold", "finished"] and row[6] == "0"
    items = manage("bulk", "show", done.last).rows
    assert len(items) == act.items.count() and {row[2] for row in items} <= {"done", "skipped"}
    assert json.loads(manage("bulk", "show", done.last, "--outcome", "failed", "--json").out)["items"] == []


def test_an_act_is_stopped(dsn: str) -> None:
    generate(60, 6)
    made = json.loads(manage("bulk", "hold", "status:open", *WHY, "--yes", "--json").out)
    assert manage("bulk", "stop", made["id"]).code == 0
    assert "over" in refused(manage("bulk", "stop", made["id"]))
    assert "no such bulk act" in refused(manage("bulk", "show", 99))


def test_at_a_terminal_a_cancel_wants_the_count_typed(dsn: str, at_terminal: AtTerminal) -> None:
    generate(60, 6)
    count = json.loads(manage("bulk", "cancel", "status:open", "--dry-run", "--json").out)["acts"]
    asked = at_terminal("bulk", "cancel", "status:open", *WHY)
    asked.read_until(f"Type {count}")
    asked.type("no\n")
    assert asked.end().code == 1 and BulkAct.objects.count() == 0
    asked = at_terminal("bulk", "cancel", "status:open", *WHY)
    asked.read_until(f"Type {count}")
    asked.type(f"{count}\n")
    assert asked.end().code == 0 and BulkAct.objects.get().verb == "cancel"
