"""What a person says who drains something: in which scope, until when, and why. The commands judge the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django import forms
from django.db.models.functions import Now

from runs.access import Person, agents_of, seen_by
from runs.gates import tools_of
from runs.models import Release, Stage, WorkerSession
from runs.open_gates import names_of
from runs.pages.forms import ReasonForm

KINDS = (
    ("worker", "One worker"),
    ("release", "Release"),
    ("agent", "Agent"),
    ("region", "Region"),
    ("tool", "Tool"),
    ("all", "Everything"),
)
TARGETS = ("worker", "release", "agent", "region", "tool")
TIMEOUTS = ((30, "30 s"), (60, "1 m"), (300, "5 m"), (600, "10 m"), (1800, "30 m"), (3600, "1 h"), (14400, "4 h"))
USUAL = 600
MOST = 500


@dataclass(frozen=True, slots=True)
class Targets:
    """What there is to drain, by kind, of what a person may reach."""

    worker: Sequence[str]
    release: Sequence[str]
    agent: Sequence[str]
    region: Sequence[str]
    tool: Sequence[str]

    def of(self, kind: str) -> Sequence[str]:
        found: Sequence[str] = getattr(self, kind)
        return found


def targets_for(user: Person) -> Targets:
    """Real ones: live workers, their regions, the agents, releases and tools that are known and not retired."""
    within = agents_of(user)
    known = seen_by(user, Release.objects.exclude(stage=Stage.RETIRED))
    releases = list(known.order_by("agent", "-created_at", "id").values_list("agent", "version")[:MOST])
    tools = tools_of(known)
    if within is not None:  # a tool that others' agents have too is not theirs to stop
        tools -= tools_of(Release.objects.exclude(agent__in=within))
    live = WorkerSession.objects.filter(ended_at__isnull=True, expires_at__gt=Now()) if within is None else None
    sessions = [] if live is None else list(live.order_by("name").values_list("name", "pool", "region")[:MOST])
    return Targets(
        worker=list(dict.fromkeys(names_of(name, pool)[-1] for name, pool, _ in sessions)),
        release=list(dict.fromkeys(f"{agent}@{version}" for agent, version in releases)),
        agent=list(dict.fromkeys(agent for agent, _ in releases)),
        region=sorted({region for _, _, region in sessions if region}),
        tool=sorted(tools),
    )


def parted(scope: str) -> dict[str, str]:
    """A scope as the form's fields have it; what is none is left out."""
    kind, _, what = scope.partition(":")
    if kind == "all":
        return {"kind": kind}
    return {"kind": kind, kind: what} if kind in TARGETS and what else {}


class DrainForm(ReasonForm):
    """The kind of scope, and its target in the field of that kind; the others' fields are not looked at."""

    kind = forms.ChoiceField(label="Scope", choices=KINDS, widget=forms.RadioSelect)
    worker = forms.ChoiceField(label="Worker", required=False)
    release = forms.ChoiceField(label="Release", required=False)
    agent = forms.ChoiceField(label="Agent", required=False)
    region = forms.ChoiceField(label="Region", required=False)
    tool = forms.ChoiceField(label="Tool", required=False)
    timeout = forms.TypedChoiceField(label="Deadline", choices=TIMEOUTS, coerce=int)
    field_order = ("kind", *TARGETS, "timeout", "reason")

    def __init__(self, targets: Targets, given: Any = None, *, scope: str = "", may_all: bool = True) -> None:
        shown = [(kind, word) for kind, word in KINDS if (may_all if kind == "all" else targets.of(kind))]
        first = {"kind": shown[0][0] if shown else "", "timeout": USUAL}
        super().__init__(given, initial=first | parted(scope), auto_id="drain_%s")  # a dialog has a reason of its own
        self.targets, self.kinds = targets, [kind for kind, _ in shown]
        choices: dict[str, list[tuple[str, str]]] = {"kind": shown}
        choices |= {kind: [(name, name) for name in targets.of(kind)] for kind in TARGETS}
        for name, given_choices in choices.items():
            field: Any = self.fields[name]
            field.choices = given_choices
        self.fields["reason"].widget = forms.TextInput()

    @property
    def given(self) -> list[tuple[str, str]]:
        """What the form was given, to be given once more."""
        return [(name, str(self[name].value() or "")) for name in self.fields]

    @property
    def shown(self) -> list[Any]:
        """The fields of targets that there are."""
        return [self[kind] for kind in self.kinds if kind in TARGETS]

    @property
    def scope(self) -> str:
        """Of what was given, were it right or wrong: a preview needs no reason. Empty where nothing is named."""
        kind = str(self["kind"].value() or "")
        if kind not in self.kinds or kind == "all":
            return kind if kind in self.kinds else ""
        names = self.targets.of(kind)
        what = str(self[kind].value() or ("" if self.is_bound else names[0]))
        return f"{kind}:{what}" if what in names else ""

    @property
    def seconds(self) -> int:
        said = str(self["timeout"].value())
        return int(said) if said in {str(seconds) for seconds, _ in TIMEOUTS} else USUAL

    def clean(self) -> dict[str, Any]:
        """`scope`, `timeout`, `reason`: what the command takes."""
        given: dict[str, Any] = super().clean() or self.cleaned_data
        kind = given.get("kind", "")
        if kind in TARGETS and not given.get(kind) and kind not in self.errors:
            self.add_error(kind, f"Choose the {kind} that is to be drained.")
        if self.errors:
            return given
        return {"scope": self.scope, "timeout": given["timeout"], "reason": given["reason"]}


MORE = ((60, "1 m"), (300, "5 m"), (600, "10 m"), (1800, "30 m"), (3600, "1 h"))


class ExtendForm(ReasonForm):
    seconds = forms.TypedChoiceField(label="More time", choices=MORE, coerce=int, initial=300)
    field_order = ("seconds", "reason")
