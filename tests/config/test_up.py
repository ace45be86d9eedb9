"""`manage.py up` keeps everything alive."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator

import pytest

from demo.agents.refund_desk import APPROVAL_LIMIT_CENTS
from demo.payments.orders import first_orders
from tests.config.rig import Up, command, soon

pytestmark = pytest.mark.slow

SESSION = "SELECT id FROM runs_workersession WHERE pid = %s AND ended_at IS NULL"
ENDED = "SELECT end_reason FROM runs_workersession WHERE id = %s AND ended_at IS NOT NULL"


def finishes_a_run(up: Up) -> bool:
    """Whether a refund that needs no approval is done; the workers of `up` do it."""
    order = next(order for order in first_orders(50) if order["total_cents"] <= APPROVAL_LIMIT_CENTS)
    words = ("start", "refund-desk", "--input", json.dumps({"order_id": order["id"]}), "--wait")
    started = subprocess.run(
        **command(*words, variables={"HOLDFAST_DATA": str(up.data)}), capture_output=True, timeout=90
    )
    assert started.returncode == 0, started.stdout + started.stderr
    return True


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    with Up(tmp_path_factory.mktemp("up") / "var") as running:
        yield running.wait_until_ready()


def test_it_prints_the_address_and_a_login_that_leads_to_the_login_page(up: Up) -> None:
    assert "olga" in up.printed() and "password" in up.printed() and "payments service: http://" in up.printed()
    assert 'name="password"' in up.page("/")


def test_the_database_lies_below_the_data_folder_and_keeps_what_it_is_told(up: Up) -> None:
    assert list(up.data.glob("**/postmaster.pid"))
    assert up.ask("SELECT current_user, current_database(), current_setting('fsync')") == [
        ("holdfast", "holdfast", "on")
    ]


def test_static_files_are_served_under_hashed_names(up: Up) -> None:
    names = [name.name for name in (up.data / "static").glob("base.*.css")]
    assert names and up.page(f"/static/{names[0]}")


def test_a_killed_worker_is_replaced_and_its_session_ended_at_once(up: Up) -> None:
    worker = soon(lambda: up.pid_of("worker", "w1"))
    session = soon(lambda: up.ask(SESSION, worker))[0][0]
    os.kill(worker, signal.SIGKILL)
    assert soon(lambda: up.ask(ENDED, session), 3) == [("process died",)]
    replacement = soon(lambda: (pid := up.pid_of("worker", "w1")) != worker and pid)
    assert soon(lambda: up.ask(SESSION, replacement))


def test_a_worker_that_stands_still_beyond_its_lease_is_killed(up: Up) -> None:
    worker = soon(lambda: up.pid_of("worker", "w2"))
    soon(lambda: up.ask(SESSION, worker))
    os.kill(worker, signal.SIGSTOP)
    replacement = soon(lambda: (pid := up.pid_of("worker", "w2")) != worker and pid, 40)
    assert soon(lambda: up.ask(SESSION, replacement))


@pytest.mark.parametrize(
    "words", [("manage.py", "sweep"), ("granian",), ("manage.py", "payments")], ids=lambda w: w[-1]
)
def test_a_killed_child_is_replaced_within_seconds(up: Up, words: tuple[str, ...]) -> None:
    child = soon(lambda: up.pid_of(*words))
    os.kill(child, signal.SIGKILL)
    soon(lambda: (pid := up.pid_of(*words)) != child and pid, 10)
    soon(up.answers, 20)


def test_a_killed_broker_is_replaced_within_seconds(up: Up) -> None:
    child = soon(lambda: up.pid_of("valkey-server"))
    os.kill(child, signal.SIGKILL)
    soon(lambda: (pid := up.pid_of("valkey-server")) != child and pid, 10)
    assert finishes_a_run(up)


def test_a_killed_database_is_replaced_and_the_pages_come_back(up: Up) -> None:
    postmaster = int((up.data / "pg/data/postmaster.pid").read_text().split()[0])
    os.kill(postmaster, signal.SIGKILL)
    soon(lambda: up.ask("SELECT 1") and int((up.data / "pg/data/postmaster.pid").read_text().split()[0]) != postmaster)
    soon(lambda: "ok" in up.page("/readyz"))
    assert finishes_a_run(up)


def test_a_second_up_on_the_same_data_says_so_and_leaves_the_first_alone(up: Up) -> None:
    second = subprocess.run(**command("up", "--data", str(up.data), "--port", "0"), capture_output=True, timeout=30)
    assert second.returncode == 1
    assert f"already runs on {up.data}: process {up.process.pid}, http://" in second.stderr
    assert up.answers()
