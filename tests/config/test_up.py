"""`manage.py up` keeps everything alive."""

import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator

import pytest

from demo.agents.refund_desk import APPROVAL_LIMIT_CENTS
from demo.payments.orders import first_orders
from tests.config.rig import Up, command

pytestmark = pytest.mark.slow

ENDED = "SELECT end_reason FROM runs_workersession WHERE id = %s AND ended_at IS NOT NULL"


def finishes_a_run(up: Up) -> bool:
    """Whether a refund that needs no approval is done; the workers of `up` do it."""
    order = next(order for order in first_orders(50) if order["total_cents"] <= APPROVAL_LIMIT_CENTS)
    words = ("start", "refund-desk", "--input", json.dumps({"order_id": order["id"]}), "--wait")
    started = subprocess.run(
        **command(*words, variables={"HOLDFAST_DATA": str(up.data)}), capture_output=True, timeout=120
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


def test_it_tells_which_model_the_demos_support_agent_asks(up: Up) -> None:
    assert re.search(r"support agent's model: scripted at http://127.0.0.1:\d+; HOLDFAST_DEMO_MODEL", up.printed())


def test_static_files_are_served_under_hashed_names(up: Up) -> None:
    names = [name.name for name in (up.data / "static").glob("base.*.css")]
    assert names and up.page(f"/static/{names[0]}")


def test_a_killed_worker_is_replaced_and_its_session_ended_at_once(up: Up) -> None:
    worker, session = up.worker("w1")
    os.kill(worker, signal.SIGKILL)
    assert up.soon(lambda: up.ask(ENDED, session)) == [("process died",)]  # without the supervisor: "lease ran out"
    assert up.worker("w1", other_than=worker)


def test_a_worker_that_stands_still_beyond_its_lease_is_killed(up: Up) -> None:
    worker, _ = up.worker("w2")
    os.kill(worker, signal.SIGSTOP)
    assert up.worker("w2", other_than=worker)


@pytest.mark.parametrize(
    "words",
    [("manage.py", "sweep"), ("granian",), ("manage.py", "payments"), ("demo.providers",)],
    ids=lambda w: w[-1],
)
def test_a_killed_child_is_replaced(up: Up, words: tuple[str, ...]) -> None:
    child = up.soon(lambda: up.pid_of(*words))
    os.kill(child, signal.SIGKILL)
    assert up.replaced(child, *words)
    up.soon(up.answers)


def test_a_killed_broker_is_replaced(up: Up) -> None:
    child = up.soon(lambda: up.pid_of("valkey-server"))
    os.kill(child, signal.SIGKILL)
    assert up.replaced(child, "valkey-server")
    assert finishes_a_run(up)


def test_a_killed_database_is_replaced_and_the_pages_come_back(up: Up) -> None:
    def postmaster() -> int:
        return int((up.data / "pg/data/postmaster.pid").read_text().split()[0])

    killed = postmaster()
    os.kill(killed, signal.SIGKILL)
    up.soon(lambda: up.ask("SELECT 1") and postmaster() != killed)
    up.soon(lambda: "ok" in up.page("/readyz"))
    assert finishes_a_run(up)


def test_a_second_up_on_the_same_data_says_so_and_leaves_the_first_alone(up: Up) -> None:
    second = subprocess.run(**command("up", "--data", str(up.data), "--port", "0"), capture_output=True, timeout=120)
    assert second.returncode == 1
    assert f"already runs on {up.data}: process {up.process.pid}, http://" in second.stderr
    assert up.soon(up.answers)
