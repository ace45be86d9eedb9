"""RabbitMQ in place of Redis: quorum queues, and messages that count as sent only when the queue has them."""

import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from config.environment import ROOT
from config.installation import free_port
from tests.config.external import Rabbit, installed_rabbitmq
from tests.config.rig import Up, command, soon

pytestmark = pytest.mark.slow

PATIENCE = 20  # seconds: a few on a quiet machine, and for ever without timeouts
DISPATCH = """
import time, uuid, django
django.setup()
from config.celery import app
from runs.dispatch import dispatch
for _ in range({times}):
    began = time.monotonic()
    print(dispatch(uuid.uuid4(), "nobody"), time.monotonic() - began, flush=True)
    input()
"""


@pytest.fixture(scope="module")
def rabbit(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rabbit]:
    with installed_rabbitmq(tmp_path_factory.mktemp("rabbit")) as running:
        yield running


@pytest.fixture(scope="module")
def up(rabbit: Rabbit, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    with Up(tmp_path_factory.mktemp("rabbit-up") / "var", variables={"BROKER_URL": rabbit.url}) as running:
        yield running.wait_until_ready()


def start(up: Up, rabbit: Rabbit) -> str:
    words = ("start", "refund-desk", "--input", '{"order_id": "o-1"}')
    variables = {"HOLDFAST_DATA": str(up.data), "BROKER_URL": rabbit.url}
    began = subprocess.run(**command(*words, variables=variables), capture_output=True, timeout=120)
    assert began.returncode == 0, began.stderr
    return began.stdout.splitlines()[-1]


def rests(up: Up, run_id: str) -> bool:
    ((status,),) = up.ask("SELECT status FROM runs_run WHERE id = %s", run_id)
    assert status not in ("failed", "quarantined")
    return status in ("done", "awaiting_approval")


def test_runs_go_through_quorum_queues_and_there_are_no_others(up: Up, rabbit: Rabbit) -> None:
    run_id = start(up, rabbit)
    up.soon(lambda: rests(up, run_id), 90)
    queues = rabbit.queues()
    assert queues and set(queues.values()) == {"quorum"}
    assert all(name.startswith("holdfast.") for name in queues)


def test_runs_go_on_when_the_broker_comes_back_with_nothing_in_it(up: Up, rabbit: Rabbit) -> None:
    rabbit.stop(signal.SIGKILL)
    waiting = [start(up, rabbit) for _ in range(2)]
    assert up.soon(up.answers), "the console works without a broker"
    rabbit.forget()
    rabbit.start()
    for run_id in waiting:
        up.soon(lambda run_id=run_id: rests(up, run_id), seconds=90)
    assert set(rabbit.queues().values()) == {"quorum"}
    run_id = start(up, rabbit)
    up.soon(lambda: rests(up, run_id), 90)


class Sender:
    """A process that sends one message at a time."""

    def __init__(self, url: str, times: int) -> None:
        given = command(variables={"BROKER_URL": url, "DJANGO_SETTINGS_MODULE": "config.settings"})
        words = (sys.executable, "-c", DISPATCH.format(times=times))
        self.process = subprocess.Popen(
            **(given | {"args": words, "cwd": ROOT}),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def says(self) -> tuple[bool, float]:
        """Whether the message was sent, and the seconds that it took."""
        assert self.process.stdout is not None
        sent, seconds = self.process.stdout.readline().split()
        return sent == "True", float(seconds)

    def again(self) -> tuple[bool, float]:
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return self.says()

    def __enter__(self) -> "Sender":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()


def test_a_broker_that_is_away_costs_a_sender_a_moment() -> None:
    with Sender(f"amqp://owner:none@127.0.0.1:{free_port(0)}/orders", 1) as sender:
        sent, seconds = sender.says()
    assert not sent and seconds < PATIENCE


def test_a_broker_that_says_nothing_costs_a_sender_seconds_and_its_next_message_goes_out(rabbit: Rabbit) -> None:
    with Sender(rabbit.url, 5) as sender:
        assert sender.says()[0]
        with rabbit.silent():
            sent, seconds = sender.again()
            assert not sent and seconds < PATIENCE
        assert soon(lambda: sender.again()[0])


def test_a_sender_finds_the_broker_again_after_its_restart(rabbit: Rabbit) -> None:
    with Sender(rabbit.url, 5) as sender:
        assert sender.says()[0]
        rabbit.stop()
        sent, seconds = sender.again()
        assert not sent and seconds < PATIENCE
        rabbit.start()
        assert sender.again()[0] or sender.again()[0], "at most one more message is lost: the sweep sends it"
