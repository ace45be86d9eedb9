"""A reader's shell: `make up` as the README says it, and the manual's commands typed beside it."""

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from tests.config.rig import UNWANTED, processes_of, soon
from tests.docs.manual import ROOT, Block
from tests.rig.fleet import Nursery

PLAIN = re.compile(r"python manage\.py [^|&;<>$`]+")
PATIENCE = 180.0  # seconds for a block of commands: each is a process


@dataclass
class Installation:
    """`data`, `address` and `payments` are in the place of `var/` and the ports 8000 and 8010 that the manual names.

    `environment` is that of a second shell.
    """

    process: subprocess.Popen[bytes]
    data: Path
    output: Path
    environment: dict[str, str]
    nursery: Nursery
    address: str = ""
    payments: str = ""
    typed: int = field(default=0)

    def in_this_place(self, text: str) -> str:
        text = text.replace("http://127.0.0.1:8000", self.address).replace("http://127.0.0.1:8010", self.payments)
        return re.sub(r"(?<![\w/])var/", f"{self.data}/", text)

    def type(self, block: Block) -> tuple[int, str]:
        """Exit code and output of the block's commands; ends at the first that fails."""
        text = self.in_this_place(block.text.replace("\\\n", " "))
        lines = text.strip().splitlines()
        if not all(PLAIN.fullmatch(line) for line in lines):
            return self.shell(text)
        said = ""
        for line in lines:
            code, more = self.manage(shlex.split(line)[2:])
            said += more
            if code != 0:
                return code, said
        return 0, said

    def shell(self, text: str) -> tuple[int, str]:
        words = ["sh", "-e", "-c", text]
        done = subprocess.run(words, env=self.environment, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE)
        return done.returncode, done.stdout + done.stderr

    def manage(self, words: list[str]) -> tuple[int, str]:
        """A command of manage.py, in a process that has its imports already."""
        pid, log = self.serve(words)
        soon(lambda: pid in self.nursery.codes, PATIENCE)
        return self.nursery.codes[pid], log.read_text()

    def serve(self, words: list[str]) -> tuple[int, Path]:
        """One that goes on: its process id and its log."""
        self.typed += 1
        log = self.data.parent / f"typed-{self.typed}.log"
        return self.nursery.bear(words, self.environment, log, [self.environment["PYTHONPATH"]]), log


def start_up(folder: Path, agents: Path, names: list[str], nursery: Nursery) -> Installation:
    """`HOLDFAST_AGENTS=… make up`, with `--port` and `--data` of its own; the modules `names` are in `agents`."""
    data, output = folder / "var", folder / "up.out"
    clean = {name: value for name, value in os.environ.items() if name not in UNWANTED}
    beside = {"PYTHONPATH": str(agents), "HOLDFAST_AGENTS": ",".join(names)}
    with open(output, "wb") as out:
        words = ["make", "up", f"ARGS=--port 0 --data {data}"]
        process = subprocess.Popen(words, env=clean | beside, cwd=ROOT, stdout=out, stderr=out, start_new_session=True)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    second = clean | beside | {"HOLDFAST_DATA": str(data), "PATH": path, "DJANGO_SETTINGS_MODULE": "config.settings"}
    up = Installation(process, data, output, second, nursery)

    def ready() -> bool:
        assert process.poll() is None, output.read_text()
        return "Ctrl-C stops" in output.read_text()

    try:
        soon(ready, 90)
    except BaseException:
        stop(up)
        raise
    up.address = re.findall(r"Holdfast runs at (\S+)", output.read_text())[-1]
    up.payments = re.findall(r"payments service: (\S+)", output.read_text())[-1]
    return up


def stop(up: Installation) -> None:
    """Ctrl-C reaches make and what it runs, as in a terminal."""
    if up.process.poll() is None:
        os.killpg(up.process.pid, signal.SIGINT)
    try:
        up.process.wait(60)
        deadline = time.monotonic() + 45
        while processes_of(up.data) and time.monotonic() < deadline:
            time.sleep(0.1)
    finally:
        for pid in processes_of(up.data):
            os.kill(pid, signal.SIGKILL)
