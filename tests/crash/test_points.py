"""Each crash point of the product is one at which a test here kills a real process."""

import re

from runs.engine.recorder import POINTS
from tests.rig.ledger import ROOT

NAMED = re.compile(r'crash_point\("([a-z-]+)"\)')


def test_each_crash_point_is_met_by_a_real_death() -> None:
    sources = [path.read_text() for room in ("journal", "runs", "recovery") for path in (ROOT / room).rglob("*.py")]
    points = {point for source in sources for point in NAMED.findall(source)}
    points |= {f"{when}-{point}" for when in ("before", "after") for point in POINTS.values()}
    here = [path for path in (ROOT / "tests/crash").glob("test_*.py") if path.stem != "test_matrix_in_process"]
    told = "\n".join(path.read_text() for path in here)
    assert [point for point in sorted(points) if not re.search(rf'"{point}(:\d)?"', told)] == []
