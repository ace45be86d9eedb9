"""What an operator may do to a run, one line a verb: the words on its page, when it applies, the command behind it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from django.forms import Form

from journal.entries import Kind
from runs.access import CONTROL
from runs.commands import cancel_run, hold_run, note_run, release_run, resume_run, retry_run, signal_run
from runs.models import ENDED, Run, Status
from runs.pages.forms import CancelForm, NoteForm, ReasonForm, SignalForm
from runs.state import RunState

BRIEFLY = "%H:%M:%S UTC"


@dataclass(frozen=True, slots=True)
class Control:
    """`button` names the act; `writes` says what will be written and what will not happen.

    `why_not` is the sentence for whoever wants it where it does not apply, empty where it does. `form` gives the
    command's own arguments.
    """

    verb: str
    button: str
    title: str
    writes: str
    look: str
    command: Callable[..., Run]
    why_not: Callable[[Run, RunState], str]
    form: type[Form] = ReasonForm
    kind: Kind = Kind.CONTROL
    permission: str = CONTROL


def not_if_ended(run: Run, state: RunState) -> str:
    if run.status not in ENDED:
        return ""
    return f"It has ended: {run.get_status_display().lower()}{f' at {run.ended_at:{BRIEFLY}}' if run.ended_at else ''}."


def unresumable(run: Run, state: RunState) -> str:
    """A run that a gate holds has nothing to be lifted: it goes on when the gate is."""
    if run.status != Status.HELD:
        return not_if_ended(run, state) or f"It is not held: it is {run.get_status_display().lower()}."
    return "" if is_resumable(state) else "A gate holds it: it goes on when the gate is lifted."


def unreleasable(run: Run, state: RunState) -> str:
    return "" if run.status == Status.QUARANTINED else not_if_ended(run, state) or "It is not quarantined."


def unretriable(run: Run, state: RunState) -> str:
    if run.status in (Status.RUNNING, Status.WAITING, Status.AWAITING_APPROVAL) and state.backs_off:
        return ""
    return not_if_ended(run, state) or "Nothing of it waits for another attempt."


def unholdable(run: Run, state: RunState) -> str:
    if run.status == Status.HELD:
        by = f", by {state.held.actor} at {state.held.at:{BRIEFLY}}" if state.held else ""
        return f"It is held already{by}."
    return not_if_ended(run, state) or ("It is quarantined." if run.status == Status.QUARANTINED else "")


def uncancellable(run: Run, state: RunState) -> str:
    if run.status not in ENDED and state.cancel is not None:
        asked = f"{state.cancel.actor} asked for it at {state.cancel.at:{BRIEFLY}}"
        return f"It is being cancelled: {asked}. It ends when what is under way has ended."
    return not_if_ended(run, state)


def never_refused(run: Run, state: RunState) -> str:
    return ""


CONTROLS = {
    control.verb: control
    for control in (
        Control(
            "resume", "Resume", "Resume this run?",
            "Writes CONTROL(resume). The run goes on from its last entry, under its pin; a brake gives its budget "
            "once more. Nothing that is settled is sent again.",
            "primary", resume_run, unresumable,
        ),
        Control(
            "release", "Release", "Release this run from quarantine?",
            "Writes CONTROL(release). Its crashes are counted anew from here.",
            "primary", release_run, unreleasable,
        ),
        Control(
            "retry", "Retry now", "Try again now?",
            "Writes CONTROL(retry). What waits for its next attempt is due at once, under the same key; an approval "
            "that expired is asked for anew.",
            "", retry_run, unretriable,
        ),
        Control(
            "hold", "Hold", "Hold this run?",
            "Writes CONTROL(hold). A call that is under way finishes and is recorded; "
            "no other is sent until someone resumes.",
            "", hold_run, unholdable,
        ),
        Control(
            "cancel", "Cancel run", "Cancel this run?",
            "Writes CONTROL(cancel). What was not sent is withdrawn. It cannot be undone.",
            "danger", cancel_run, uncancellable, CancelForm,
        ),
        Control(
            "signal", "Signal", "Send a signal?",
            "Writes SIGNAL. The oldest step that waits for this name takes it; without one it is kept until one does.",
            "", signal_run, not_if_ended, SignalForm, Kind.SIGNAL,
        ),
        Control(
            "note", "Note", "Add a note?",
            "Writes NOTE. It changes nothing of the run, and stays in its journal.",
            "", note_run, never_refused, NoteForm, Kind.NOTE,
        ),
    )
}  # fmt: skip


def is_resumable(state: RunState) -> bool:
    return state.held is not None or state.diverged is not None or state.braked is not None


def refusal(act: Control, run: Run, state: RunState) -> str:
    """Why the act does not apply now, else empty. A stateless run has no journal: it can only be cancelled."""
    if run.input is not None and act.verb != "cancel":
        return "It keeps no journal: it can only be cancelled."
    return act.why_not(run, state)


def controls_of(run: Run, state: RunState) -> list[Control]:
    """Those that apply now."""
    return [control for control in CONTROLS.values() if not refusal(control, run, state)]
