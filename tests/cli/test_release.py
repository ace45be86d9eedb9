"""`manage.py release`: stages, what needs a release, how its runs fare, what differs."""

from __future__ import annotations

import json

import pytest

from runs.models import AuditRecord, Release
from runs.registry import announce_one
from runs.sdk import Agent, Budget, Finish, start
from tests.cli.manage import AtTerminal, manage, refused
from tests.runs.staged import release, serve

WHY = ("--reason", "tested")
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def staged() -> None:
    """7 is current, 8 a candidate; both served."""
    serve(release("7"))
    serve(release("8", budget=Budget(steps=9)), name="w2")


def test_a_canary_is_promoted_and_rolled_back(staged: None) -> None:
    done = manage("release", "canary", "staged@8", "--share", "10", *WHY)
    assert done.rows == [["staged@8: canary 10%"], [Release.objects.get(version="8").id]]
    told = json.loads(manage("release", "promote", "staged@8", *WHY, "--json").out)
    assert (told["stage"], told["served_by"]) == ("current", ["w2"])
    assert manage("release", "rollback", "staged", *WHY).rows[0] == ["staged@7: current"]
    assert "promote the one that you want" in refused(manage("release", "rollback", "staged", *WHY))
    by = AuditRecord.objects.filter(act="release.rollback").get()
    assert by.actor.startswith("shell:") and (by.door, by.reason) == ("shell", "tested")


def test_a_release_tells_what_needs_it_and_retires_when_nothing_does(staged: None) -> None:
    run = start("staged")
    told = manage("release", "needs", "staged@7")
    assert told.code == 1
    assert [row[:2] for row in told.rows] == [["new runs of staged are pinned to it", ""], ["1 run queued", "1"]]
    assert told.rows[1][3] == str(run)
    assert json.loads(manage("release", "needs", "staged@7", "--json").out)["may_retire"] is False
    assert "1 run queued" in refused(manage("release", "retire", "staged@7", *WHY))
    assert manage("release", "needs", "staged@8").code == 0
    assert manage("release", "retire", "staged@8", *WHY).rows[0] == ["staged@8: retired"]
    assert [row[0] for row in manage("release", "list").rows] == ["staged@7"]
    assert [row[0] for row in manage("release", "list", "--all", "--agent", "staged").rows] == ["staged@7", "staged@8"]


def test_wrong_words_are_refused(staged: None) -> None:
    assert "--reason" in refused(manage("release", "promote", "staged@8"))
    assert "no such release" in refused(manage("release", "promote", "staged@9", *WHY))
    assert "--share" in refused(manage("release", "canary", "staged@8", *WHY))
    assert "0<=x<=100" in refused(manage("release", "canary", "staged@8", "--share", "101", *WHY))
    release("9")
    assert "staged@9" in refused(manage("release", "promote", "staged@9", *WHY))
    assert manage("release", "promote", "staged@9", *WHY, "--anyway").code == 0


def test_the_list_says_for_a_person_what_to_look_at(staged: None, at_terminal: AtTerminal) -> None:
    manage("release", "canary", "staged@8", "--share", "10", *WHY)
    serve(Release.objects.get(version="8"), name="w3", code="other")
    Release.objects.filter(version="7").update(stage="current")
    rows = {row[0]: row for row in manage("release", "list").rows}
    assert rows["staged@8"][4:] == ["canary", "10", "2", "0"] and rows["staged@7"][1] == "0 open"
    shown = at_terminal("release", "list", columns=160).end().out
    assert "canary 10%" in shown and "its workers run 2 different codes" in shown


def test_rates_lie_side_by_side(staged: None, at_terminal: AtTerminal) -> None:
    start("staged")
    rows = manage("release", "rates", "staged@7", "staged@8").rows
    assert rows == [["staged@7", "1", "0", "0", "0", "0", "0", ""], ["staged@8", "0", "0", "0", "0", "0", "0", ""]]
    assert [one["runs"] for one in json.loads(manage("release", "rates", "staged@7", "--json").out)] == [1]
    assert "0 (0.0%)" in at_terminal("release", "rates", "staged@7", columns=160).end().out


def test_two_releases_are_compared(staged: None, at_terminal: AtTerminal) -> None:
    assert manage("release", "diff", "staged@7", "staged@8").rows[0] == ["added", "budget.steps", "", "9"]
    assert manage("release", "diff", "staged@7", "staged@7").out == ""
    assert json.loads(manage("release", "diff", "staged@7", "staged@8", "--json").out)["fields"][0]["after"] == 9
    for number, prompt in (("1", "Be kind.\nBe brief."), ("2", "Be kind.\nBe long.")):
        made = announce_one(Agent("prompted", number, decide=lambda state: Finish()))
        Release.objects.filter(id=made.id).update(content=made.content | {"prompt": prompt}, declared="")
    rows = manage("release", "diff", "prompted@1", "prompted@2").rows
    assert [row[1:] for row in rows] == [
        ["prompt", " ", "Be kind."], ["prompt", "-", "Be brief."], ["prompt", "+", "Be long."],
    ]  # fmt: skip
    assert {row[0] for row in rows} == {"text"}, "a row says what it is of"
    assert "+ Be long." in at_terminal("release", "diff", "prompted@1", "prompted@2", columns=120).end().out
    assert "the same content" in at_terminal("release", "diff", "staged@7", "staged@7", columns=120).end().out
