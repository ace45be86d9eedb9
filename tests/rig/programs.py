"""A program (tests.rig.script) for each way to wait, and its result when a robot serves it."""

from typing import Any

from tests.rig.robot import ANSWER

CALL = ["call", "keyed-probe"]
CHILD = ["spawn", [CALL], "script"]
NEVER = ["wait", "never", 3600]

PROGRAMS: dict[str, tuple[list[Any], list[Any]]] = {
    "question": ([["ask", None], CALL], [ANSWER, "acted"]),
    "first of two times": ([["first", [["sleep", 3600], ["sleep", 0]]], CALL], [[1, None], "acted"]),
    "signals": ([["wait", "go", None], CALL, ["wait", "go", 3600]], [1, "acted", 2]),
    "sleep": ([["sleep", 0.02], CALL], [None, "acted"]),
    "child": ([CHILD, CALL], [["acted"], "acted"]),
    "join": ([["all", [CHILD, CALL, ["spawn", [["sleep", 0]], "script-decide"]]]], [[["acted"], "acted", [None]]]),
    "first of signal and time": ([["first", [["wait", "go", None], ["sleep", 3600]]], CALL], [[0, 1], "acted"]),
    "first of children": ([["first", [["spawn", [NEVER], "script"], CHILD]], CALL], [[1, ["acted"]], "acted"]),
    "grandchild": ([["spawn", [["spawn", [["ask", None], CALL], "script"]], "script"]], [[[ANSWER, "acted"]]]),
    "limit": ([["all", [["call", "limited"], ["call", "limited"]]]], [["acted", "acted"]]),
    "approval beside waits": (
        [["all", [["call", "gated"], ["wait", "go", None], ["ask", None]]]], [["acted", 1, ANSWER]],
    ),
}  # fmt: skip
