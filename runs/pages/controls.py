"""What an operator may do to a run, one line a verb: the words on its page and the command behind it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from django.forms import Form

from runs.commands import cancel_run, hold_run, note_run, release_run, resume_run, retry_run, signal_run
from runs.models import ENDED, Run, Status
from runs.pages.forms import NoteForm, ReasonForm, SignalForm
from runs.state import RunState


@dataclass(frozen=True, slots=True)
class Control:
    """`button` names the act; `writes` says what will be written and what will not happen. `form` gives the command's
    own arguments."""

    verb: str
    button: str
    title: str
    writes: str
    look: str
    command: Callable[..., Run]
    applies: Callable[[Run, RunState], bool]
    form: type[Form] = ReasonForm


CONTROLS = {
    control.verb: control
    for control in (
        Control(
            "resume", "Resume", "Resume this run?",
            "Writes CONTROL(resume). The run goes on from its last entry, under its pin; a brake gives its budget "
            "once more. Nothing that is settled is sent again.",
            "primary", resume_run, lambda run, state: run.status == Status.HELD and is_resumable(state),
        ),
        Control(
            "release", "Release", "Release this run from quarantine?",
            "Writes CONTROL(release). Its crashes are counted anew from here.",
            "primary", release_run, lambda run, state: run.status == Status.QUARANTINED,
        ),
        Control(
            "retry", "Retry now", "Try again now?",
            "Writes CONTROL(retry). What waits for its next attempt is due at once, under the same key.",
            "", retry_run, lambda run, state: run.status in (Status.RUNNING, Status.WAITING) and state.backs_off,
        ),
        Control(
            "hold", "Hold", "Hold this run?",
            "Writes CONTROL(hold). A call that is under way finishes and is recorded; "
            "no other is sent until someone resumes.",
            "", hold_run, lambda run, state: run.status not in (*ENDED, Status.HELD, Status.QUARANTINED),
        ),
        Control(
            "cancel", "Cancel run", "Cancel this run?",
            "Writes CONTROL(cancel). What was not sent is withdrawn. An intent in doubt still asks for an answer. "
            "It cannot be undone.",
            "danger", cancel_run, lambda run, state: run.status not in ENDED,
        ),
        Control(
            "signal", "Signal", "Send a signal?",
            "Writes SIGNAL. The oldest step that waits for this name takes it; without one it is kept until one does.",
            "quiet", signal_run, lambda run, state: run.status not in ENDED, SignalForm,
        ),
        Control(
            "note", "Note", "Add a note?",
            "Writes NOTE. It changes nothing of the run, and stays in its journal.",
            "quiet", note_run, lambda run, state: True, NoteForm,
        ),
    )
}  # fmt: skip


def is_resumable(state: RunState) -> bool:
    """A run that a gate holds has nothing to be lifted: it goes on when the gate is."""
    return state.held is not None or state.diverged is not None or state.braked is not None


def controls_of(run: Run, state: RunState) -> list[Control]:
    """Those that apply now. A stateless run has no journal: it can only be cancelled."""
    found = [control for control in CONTROLS.values() if control.applies(run, state)]
    return found if run.input is None else [control for control in found if control.verb == "cancel"]
