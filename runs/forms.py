"""What people write in the console, checked for shape only; the commands judge the rest."""

from __future__ import annotations

from django import forms

from runs.models import Status

REASON = {"required": "Write a reason. It is kept in the journal with your name."}


class ReasonForm(forms.Form):
    reason = forms.CharField(max_length=2000, strip=True, error_messages=REASON)


class ApprovalForm(forms.Form):
    """The digest is the one that was on screen: what is signed is what was read."""

    verdict = forms.ChoiceField(choices=[("approve", "Approve"), ("deny", "Reject")])
    digest = forms.CharField(max_length=200)
    note = forms.CharField(max_length=2000, required=False)

    def clean(self) -> dict[str, str]:
        given: dict[str, str] = super().clean() or self.cleaned_data
        if given.get("verdict") == "deny" and not given.get("note"):
            self.add_error("note", "Say why it is rejected: the agent and the journal get the reason.")
        return given


class RunFilter(forms.Form):
    """The list's filters; the address holds them. What cannot be understood filters nothing."""

    status = forms.MultipleChoiceField(choices=Status.choices, required=False)
    agent = forms.CharField(max_length=200, required=False)
    q = forms.CharField(max_length=200, required=False)
    after = forms.CharField(max_length=200, required=False)
