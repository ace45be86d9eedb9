"""`manage.py doctor`: its shapes. What it finds is tested in tests/config."""

import json

from tests.cli.manage import AtTerminal, manage


def test_a_fault_is_exit_1_in_every_shape(dsn: str, at_terminal: AtTerminal) -> None:
    told, document = manage("doctor"), manage("doctor", "--json")
    assert told.code == document.code == 1 and "to put right" in told.err
    found = {item["what"]: item for item in json.loads(document.out)}
    assert found["durability"]["fault"] is True and found["partitions"]["fault"] is False
    assert "ok     database: " in told.out
    shown = at_terminal("doctor").end()
    assert shown.code == 1 and "FAULT" in shown.out
