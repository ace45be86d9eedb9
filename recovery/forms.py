"""What a person says of what waits for them, checked for shape only; the commands judge the rest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms
from django.core.files.uploadedfile import UploadedFile as Upload

from recovery.files import LARGEST, EvidenceFile
from runs.pages.forms import JsonField

LONGEST = 10_000
VERDICTS = [
    ("probe", "Ask the tool"),
    ("happened", "It happened"),
    ("never_happened", "It never happened"),
    ("abort", "Abort"),
]


class DigestForm(forms.Form):
    """The digest is the one that was on screen: what is signed is what was read."""

    digest = forms.CharField(max_length=200, error_messages={"required": "The digest is missing. Read the item again."})


class ApproveForm(DigestForm):
    read = forms.BooleanField(error_messages={"required": "Tick that you have read the arguments."})
    note = forms.CharField(max_length=LONGEST, required=False, widget=forms.Textarea)


class RejectForm(DigestForm):
    note = forms.CharField(
        max_length=LONGEST, widget=forms.Textarea,
        error_messages={"required": "Say why it is rejected: the agent and the journal get the reason."},
    )  # fmt: skip


class EditNoteForm(DigestForm):
    note = forms.CharField(
        max_length=LONGEST, widget=forms.Textarea, error_messages={"required": "Say why you change the arguments."}
    )


class AskForm(DigestForm):
    note = forms.CharField(
        max_length=LONGEST, widget=forms.Textarea, error_messages={"required": "Write the question."}
    )


class ReplyForm(forms.Form):
    text = forms.CharField(max_length=LONGEST, widget=forms.Textarea, error_messages={"required": "Write the answer."})


class OldApprovalForm(DigestForm):
    """As it was sent to the address that approvals had before the inbox."""

    verdict = forms.ChoiceField(choices=[("approve", "Approve"), ("deny", "Reject")])
    note = forms.CharField(max_length=LONGEST, required=False)

    def clean(self) -> dict[str, str]:
        given: dict[str, str] = super().clean() or self.cleaned_data
        if given.get("verdict") == "deny" and not given.get("note"):
            self.add_error("note", "Say why it is rejected: the agent and the journal get the reason.")
        return given


class ReconcileForm(forms.Form):
    """One answer of four; each has its own field for how its author knows (`evidence_<verdict>`).

    `tool`: its name is typed before something that may repeat an effect. `run`: its short id, before it is ended.
    """

    verdict = forms.ChoiceField(choices=VERDICTS, error_messages={"required": "Say what is to be recorded."})
    attempt = forms.IntegerField(min_value=1, required=False)
    evidence = forms.CharField(max_length=LONGEST, required=False)
    evidence_probe = forms.CharField(max_length=LONGEST, required=False)
    evidence_happened = forms.CharField(max_length=LONGEST, required=False, widget=forms.Textarea)
    evidence_never_happened = forms.CharField(max_length=LONGEST, required=False, widget=forms.Textarea)
    evidence_abort = forms.CharField(max_length=LONGEST, required=False, widget=forms.Textarea)
    external_id = forms.CharField(max_length=500, required=False)
    file = forms.FileField(required=False, max_length=300)
    unknown = forms.BooleanField(required=False)
    typed_tool = forms.CharField(max_length=400, required=False)
    typed_run = forms.CharField(max_length=60, required=False)

    def __init__(
        self, data: Any = None, files: Any = None, *, tool: str = "", run: str = "", unkeyed: bool = False
    ) -> None:
        super().__init__(data, files)
        self.tool, self.run, self.unkeyed = tool, run, unkeyed

    def clean_file(self) -> Upload[Any] | None:
        file: Upload[Any] | None = self.cleaned_data["file"]
        if file is not None and (file.size or 0) > LARGEST:
            raise forms.ValidationError("A file as evidence may have 10 MB. Your text was kept; choose the file again.")
        return file

    def clean(self) -> dict[str, Any]:
        given: dict[str, Any] = super().clean() or self.cleaned_data
        verdict = given.get("verdict")
        if not verdict:
            return given
        own = f"evidence_{verdict}"
        given["said"] = given.get(own) or given.get("evidence") or ""
        if not given["said"]:
            self.add_error(own, "Write how you know. It is kept in the journal with your name.")
        if verdict == "never_happened" and self.unkeyed and given.get("typed_tool") != self.tool:
            self.add_error("typed_tool", f"Type the tool's name, {self.tool}: sending it again may repeat the effect.")
        if verdict == "abort" and given.get("typed_run", "").lower() != self.run.lower():
            self.add_error("typed_run", f"Type the name of the run, {self.run}: it cannot be undone.")
        return given

    @property
    def evidence_file(self) -> EvidenceFile | None:
        """Of an answer that takes one."""
        file = self.cleaned_data.get("file")
        if file is None or self.cleaned_data["verdict"] not in ("happened", "never_happened"):
            return None
        return EvidenceFile(file.name or "", file.content_type or "", file.read())


class OldReconcileForm(forms.Form):
    """As it was sent to the address that reconciliations had before the inbox."""

    verdict = forms.ChoiceField(choices=VERDICTS)
    evidence = forms.CharField(
        max_length=LONGEST, error_messages={"required": "Write how you know. It is kept in the journal with your name."}
    )
    result = JsonField(required=False)
    attempt = forms.IntegerField(min_value=1, required=False)


class ProbeForm(forms.Form):
    """Which of those in doubt are to be asked, and why."""

    evidence = forms.CharField(max_length=2_000, error_messages={"required": "Write why you ask."})
    item = forms.TypedMultipleChoiceField(coerce=str, error_messages={"required": "Tick what is to be asked."})

    def __init__(self, data: Mapping[str, Any] | None = None) -> None:
        super().__init__(data)
        given = data.getlist("item") if data is not None and hasattr(data, "getlist") else []
        field: Any = self.fields["item"]
        field.choices = [(id, id) for id in given]


class AdoptForm(forms.Form):
    note = forms.CharField(
        max_length=LONGEST, widget=forms.Textarea, error_messages={"required": "Say why it is adopted."}
    )
