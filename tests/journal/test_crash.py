import subprocess
import sys

import pytest

CODE = """
from journal.crash import crash_point
for n in range(1, 5):
    crash_point("elsewhere")
    crash_point("here")
    print(n, flush=True)
"""


@pytest.mark.parametrize(
    ("crash", "said", "code"), [("", "1 2 3 4", 0), ("here", "", -9), ("here:3", "1 2", -9), ("nowhere", "1 2 3 4", 0)]
)
def test_the_process_dies_at_the_named_place_the_nth_time(crash: str, said: str, code: int) -> None:
    done = subprocess.run([sys.executable, "-c", CODE], env={"HOLDFAST_CRASH": crash}, capture_output=True, text=True)
    assert (done.stdout.split(), done.returncode) == (said.split(), code)
