"""Two contents of releases, compared field by field."""

from __future__ import annotations

from typing import Any, TypedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from runs.releases_compared import Change, diff, in_words, text_change
from runs.sdk import Agent, Budget, Finish, Policy, Retry, ToolContext, tool
from runs.sdk.models import FunctionModel, ModelLoop


class Address(TypedDict):
    street: str
    zip: int


@tool(effect="keyed", timeout=20)
def pay(ctx: ToolContext, order: str, cents: int = 5) -> str:
    """Pays."""
    return order


@tool(
    name="pay",
    effect="probed",
    timeout=30,
    max_in_flight=60,
    retry=Retry(attempts=9),
    approval=Policy(group="admin"),
    probe=lambda ctx, **_: None,
)
def pay_anew(ctx: ToolContext, order: int, to: Address, note: str | None = None) -> str:
    """Pays.

    To an address.
    """
    return str(order)


@tool(effect="read")
def look(ctx: ToolContext) -> str:
    return ""


def content(*tools: Any, **given: Any) -> dict[str, Any]:
    return Agent("compared", "1", tools, decide=lambda state: Finish(), **given).content


def test_the_same_content_has_no_difference_whatever_its_version_is() -> None:
    one = content(pay, look, budget=Budget(steps=5), input=Address)
    found = diff(one, one | {"version": "2"})
    assert found.same and not found.fields and in_words(one, one) == "nothing that is told"


def test_fields_are_told_through_objects_and_absent_ones_as_added_or_removed() -> None:
    found = diff(content(budget=Budget(steps=5), limit=3), content(budget=Budget(steps=6, tokens=9), deadline=60.0))
    assert set(found.fields) == {
        Change("budget.steps", "changed", 5, 6), Change("budget.tokens", "added", None, 9),
        Change("deadline", "added", None, 60.0), Change("limit", "removed", 3, None),
    }  # fmt: skip
    assert not found.same and "budget.steps" in in_words(
        content(budget=Budget(steps=5)), content(budget=Budget(steps=6))
    )


def test_a_number_that_only_changes_its_type_is_a_change_for_the_digest_is_another() -> None:
    assert diff({"share": 1}, {"share": 1.0}).fields == [Change("share", "changed", 1, 1.0)]
    assert diff({"probe": True}, {"probe": 1}).fields == [Change("probe", "changed", True, 1)]


def test_tools_are_compared_by_parameter_and_by_setting() -> None:
    (changed,) = diff(content(pay), content(pay_anew)).tools
    settings = {change.place: (change.before, change.after) for change in changed.settings}
    assert settings["effect"] == ("keyed", "probed") and settings["timeout"] == (20, 30)
    assert settings["retry.attempts"][1] == 9 and settings["approval.group"] == (None, "admin")
    assert {change.place: (change.kind, change.before, change.after) for change in changed.parameters} == {
        "order": ("changed", "string, required", "integer, required"),
        "to": ("added", None, "object, required"),
        "to.street": ("added", None, "string, required"),
        "to.zip": ("added", None, "integer, required"),
        "note": ("added", None, "string or null, default null"),
        "cents": ("removed", "integer, default 5", None),
    }
    (doc,) = changed.texts
    assert (doc.place, doc.added, doc.removed) == ("doc", 2, 0)


def test_tools_that_came_and_went_are_told_as_such() -> None:
    found = diff(content(pay), content(look))
    assert [(each.tool, each.kind) for each in found.tools] == [("look", "added"), ("pay", "removed")]
    assert in_words(content(pay), content(look)) == "tool look (added), tool pay (removed)"


def test_what_a_run_is_started_with_is_compared_by_path() -> None:
    found = diff(content(input=Address), content(input={"type": "array", "items": {"type": "string"}}))
    assert {(change.place, change.kind) for change in found.input} == {
        ("street", "removed"), ("zip", "removed"), ("value", "added"), ("value[]", "added"),
    }  # fmt: skip


def test_a_prompt_is_told_by_line_with_its_surroundings() -> None:
    old = {"model": {"name": "m"}, "prompt": "\n".join(f"line {n}" for n in range(30))}
    new = old | {"prompt": old["prompt"].replace("line 15\n", "line fifteen\n") + "\nend"}
    (text,) = diff(old, new).texts
    told = [f"{line.sign}{line.text}" for line in text.lines]
    assert told[:2] == ["…", " line 12"] and "-line 15" in told and "+line fifteen" in told and told[-1] == "+end"
    assert told.count("…") == 2 and (text.added, text.removed) == (2, 1)
    (short,) = diff({"prompt": "a"}, {"prompt": "b"}).texts
    assert (short.before, short.after) == ("a", "b")


def test_any_text_of_several_lines_is_told_by_line_wherever_it_stands() -> None:
    (text,) = diff({"model": {"system": "a\nb"}}, {"model": {}}).texts
    assert text.place == "model.system" and text.removed == 2


@given(st.lists(st.text("ab", max_size=2), max_size=12), st.lists(st.text("ab", max_size=2), max_size=12))
def test_the_lines_told_lead_from_one_text_to_the_other(old: list[str], new: list[str]) -> None:
    before, after = "\n".join(old), "\n".join(new)
    lines = text_change("prompt", before, after).lines
    gone, come = before.splitlines(), after.splitlines()
    assert sum(line.sign == "-" for line in lines) - sum(line.sign == "+" for line in lines) == len(gone) - len(come)
    assert all(line.text in gone for line in lines if line.sign in "- ")
    assert all(line.text in come for line in lines if line.sign in "+ ")


def test_a_schema_that_refers_to_itself_is_told_to_an_end() -> None:
    tree = {"$ref": "#/$defs/T", "$defs": {"T": {"type": "object", "properties": {"of": {"$ref": "#/$defs/T"}}}}}
    found = diff(content(), content(input=tree))
    assert found.input[0].place == "of" and len(found.input) < 20


def test_the_prompt_and_the_settings_of_a_model_are_part_of_the_release() -> None:
    def asks(prompt: str | None = None, **settings: Any) -> Agent:
        slot = FunctionModel(lambda state: (Finish(), {}), model="lumen-1", prompt=prompt, settings=settings or None)
        return Agent(name="asks", version="1", decide=slot)

    plain, set_up = asks(), asks("Be brief.\nBe kind.", temperature=0.1)
    assert plain.content["model"] == {"name": "lumen-1", "timeout": 60.0}, "what is not given changes no release"
    ids = {agent.release_id for agent in (plain, set_up, asks("Be brief."), asks("Be brief.", temperature=0.1))}
    assert len(ids) == 4
    found = diff(set_up.content, asks("Be brief.\nBe firm.", temperature=0.9).content)
    assert found.fields == [Change("model.settings.temperature", "changed", 0.1, 0.9)]
    assert [(text.place, text.added, text.removed) for text in found.texts] == [("model.prompt", 1, 1)]


@pytest.mark.parametrize("settings", [["hot"], {"at": (1,)}, {"at": float("nan")}, {1: "one"}, {"at": b"1"}])
def test_settings_that_json_does_not_know_are_refused(settings: Any) -> None:
    with pytest.raises(ValueError, match="what JSON knows"):
        FunctionModel(lambda state: (Finish(), {}), settings=settings)


def test_a_prompt_is_a_text() -> None:
    with pytest.raises(ValueError, match="prompt= is a text"):
        FunctionModel(lambda state: (Finish(), {}), prompt=["Be brief."])  # type: ignore[arg-type]


def test_a_model_loop_is_told_field_by_field_its_result_by_path() -> None:
    class Verdict(BaseModel):
        refunded: bool

    class Longer(Verdict):
        why: str

    def content(**given: Any) -> dict[str, Any]:
        model = {"model": "anthropic:claude-haiku-4-5-20251001", "prompt": "Be brief."} | given
        return Agent("desk", "1", [], ModelLoop(**model)).content

    found = diff(
        content(output=Verdict),
        content(
            output=Longer, prompt="Be kind.", settings={"temperature": 0.5}, native={"web_search": "read"},
            fallback=("openai:gpt-5.2-2026-01-01",),
        ),
    )  # fmt: skip
    assert {change.place: change.kind for change in found.fields} == {
        "model.settings.temperature": "added", "model.fallback": "added", "model.native.web_search": "added",
        "model.output.why": "added",
    }  # fmt: skip
    assert [text.place for text in found.texts] == ["model.prompt"]
