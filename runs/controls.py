"""What an operator may do to a run, one line a verb: the words on its page and the command behind it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from runs.commands import cancel_run, hold_run, release_run, resume_run
from runs.models import ENDED, Run, Status


@dataclass(frozen=True, slots=True)
class Control:
    """`button` names the act; `writes` says what will be written and what will not happen."""

    verb: str
    button: str
    title: str
    writes: str
    look: str
    command: Callable[..., Run]
    applies: Callable[[Run], bool]


CONTROLS = {
    control.verb: control
    for control in (
        Control(
            "resume", "Resume", "Resume this run?",
            "Writes CONTROL(resume). The run goes on from its last entry, under its pin. "
            "Nothing that is settled is sent again.",
            "primary", resume_run, lambda run: run.status == Status.HELD,
        ),
        Control(
            "release", "Release", "Release this run from quarantine?",
            "Writes CONTROL(release). Its crashes are counted anew from here.",
            "primary", release_run, lambda run: run.status == Status.QUARANTINED,
        ),
        Control(
            "hold", "Hold", "Hold this run?",
            "Writes CONTROL(hold). A call that is under way finishes and is recorded; "
            "no other is sent until someone resumes.",
            "", hold_run, lambda run: run.status not in (*ENDED, Status.HELD, Status.QUARANTINED),
        ),
        Control(
            "cancel", "Cancel run", "Cancel this run?",
            "Writes CONTROL(cancel). What was not sent is withdrawn. An intent in doubt still asks for an answer. "
            "It cannot be undone.",
            "danger", cancel_run, lambda run: run.status not in ENDED,
        ),
    )
}  # fmt: skip


def controls_of(run: Run) -> list[Control]:
    return [control for control in CONTROLS.values() if control.applies(run)]
