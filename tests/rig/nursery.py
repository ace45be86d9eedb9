"""Processes of `manage.py`, and consoles, born in some hundredths of a second: a process with all imported forks them.

Each child is a process of its own in every other way: own session and process group, own environment, settings read
anew, connections made after the fork. Reads one order a line, `{"words", "environment", "log"}`; tells each birth and
each death. When its input ends, it kills what it made.
"""

import gc
import importlib
import io
import json
import os
import select
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

ROOT = Path(__file__).resolve().parents[2]
PRELOADED = (
    "celery.apps.worker", "celery.app.amqp", "celery.app.control", "celery.app.log",
    "celery.bin.celery", "celery.bin.worker",
    "celery.concurrency.thread", "celery.concurrency.prefork", "celery.fixups.django", "celery.worker.autoscale",
    "celery.worker.components", "celery.worker.consumer.delayed_delivery", "celery.worker.strategy",
    "kombu.transport.redis", "psycopg_pool", "obstore.store", "django.core.management",
    "django.db.backends.postgresql.base",
    "config.celery", "config.urls", "recovery.management.commands.sweep", "runs.management.commands.start",
    "runs.management.commands.worker", "runs.tasks", "tests.rig.agents",
)  # fmt: skip
# Imported before the first worker whose agents ask models is born, and before the first console: most sessions of tests
# want none.
OF_MODELS = (
    "anthropic", "genai_prices", "openai", "pydantic_ai.models.anthropic", "pydantic_ai.models.openai",
    "runs.loops.answers", "runs.loops.asking", "runs.loops.prices", "tests.rig.talks",
)  # fmt: skip
OF_THE_WEB = (
    "allauth.account.middleware", "django.contrib.messages.middleware", "django.core.handlers.asgi",
    "django.middleware.clickjacking", "django.middleware.csp", "django.middleware.security", "django.template.loader",
    "django_htmx.middleware", "granian.cli", "granian.server.mp", "config.errors", "runs.audit",
)  # fmt: skip


def main() -> None:
    sys.path.insert(0, str(ROOT))
    os.environ["DJANGO_SETTINGS_MODULE"] = "config.settings"
    import django

    django.setup()
    for name in PRELOADED:
        importlib.import_module(name)
    gc.freeze()  # else each child copies the pages of all that is imported here
    tell(ready=True)
    children: set[int] = set()
    woken, waker = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    signal.set_wakeup_fd(waker)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    orders: Any = io.FileIO(0, closefd=False)  # unbuffered: select must see what was not read yet
    while True:
        ready = select.select([orders, woken], [], [])[0]
        if woken in ready:
            os.read(woken, 4096)
        bury(children)
        if orders in ready:
            line = orders.readline()
            if not line:
                break
            children.add(bear(json.loads(line)))
    for pid in children:
        os.killpg(pid, signal.SIGKILL)


def bear(order: dict[str, Any]) -> int:
    if order["words"][0] == "granian":
        preload(OF_THE_WEB)
    elif "talks" in order["environment"].get("HOLDFAST_AGENTS", ""):
        preload(OF_MODELS)
    pid = os.fork()
    if pid == 0:
        live(order)
    tell(born=pid)
    return pid


def preload(names: Sequence[str]) -> None:
    if not set(names) <= set(sys.modules):
        for name in names:
            importlib.import_module(name)
        gc.freeze()


def bury(children: set[int]) -> None:
    for pid in list(children):
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            children.discard(pid)
            tell(died=pid, code=os.waitstatus_to_exitcode(status))


def live(order: dict[str, Any]) -> NoReturn:
    """In the child: become the command that was ordered."""
    code = 1
    try:
        os.setsid()
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        log = os.open(order["log"], os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
        typed = log if os.isatty(log) else os.open(os.devnull, os.O_RDONLY)
        for fd, number in ((typed, 0), (log, 1), (log, 2)):
            os.dup2(fd, number)
        os.environ.clear()
        os.environ.update(order["environment"])
        sys.path[:0] = order["path"]
        read_settings_anew()
        set_clock(float(os.environ.get("RIG_CLOCK_AHEAD", "0")))
        if order["words"][0] == "granian":
            serve(order["words"])
        else:
            sys.argv = ["manage.py", *order["words"]]
            from terminal.command import Utility

            Utility(sys.argv).execute()
        code = 0
    except SystemExit as left:
        code = left.code if isinstance(left.code, int) else 1
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def serve(words: list[str]) -> None:
    """As `python -m granian` would; its worker is a fork too."""
    import multiprocessing
    import runpy

    multiprocessing.set_start_method("fork")
    sys.argv = words
    runpy.run_module("granian", run_name="__main__")


def read_settings_anew() -> None:
    """What was read from the environment at import is read again: the settings, and the point to die at."""
    from django.conf import settings
    from django.db import connections

    import config.settings
    import journal.crash

    importlib.reload(config.settings)
    importlib.reload(journal.crash)
    for name in dir(config.settings):
        if name.isupper():
            setattr(settings, name, getattr(config.settings, name))
    vars(connections).pop("settings", None)
    vars(connections)["_settings"] = None
    del connections["default"]


def set_clock(ahead: float) -> None:
    """What `time.time` answers is `ahead` seconds in the future, for every module that knows it by whatever name."""
    right = time.time
    if not ahead:
        return

    def wrong() -> float:
        return right() + ahead

    for module in list(sys.modules.values()):
        for name, value in list(vars(module).items()):
            if value is right:
                setattr(module, name, wrong)


def tell(**news: Any) -> None:
    sys.stdout.write(json.dumps(news) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
