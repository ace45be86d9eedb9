"""The journal as it is stored: a table, a file, and whether it is what was written."""

import json

import pytest
from django.test import Client

from journal.entries import Kind
from journal.export import read_line
from runs.models import AuditRecord
from tests.pages.incidents import incident, url_of
from tests.pages.journals import Story, tampered

pytestmark = pytest.mark.django_db


def test_the_raw_journal_is_a_table_of_every_entry_a_page_at_a_time(victor: Client) -> None:
    story = Story()
    for n in range(205):
        story.write(Kind.NOTE, {"text": f"remark <{n}>"}, actor="olga")
    first = victor.get(f"{story.url}/journal").content.decode()
    assert first.count('<th class="n" scope="row">') == 200 and "Entries 1 to 200 of 206" in first
    assert 'href="?after=200"' in first and "remark &lt;0&gt;" in first and "Earlier" not in first
    second = victor.get(f"{story.url}/journal?after=200").content.decode()
    assert "Entries 201 to 206 of 206" in second and "Later" not in second and 'href="?after=0"' in second


def test_the_journal_is_taken_away_as_lines_that_an_import_takes_and_it_is_recorded(victor: Client) -> None:
    run = incident()
    answer = victor.get(f"{url_of(run)}/journal.jsonl")
    lines = answer.content.decode().splitlines()  # type: ignore[attr-defined]
    assert answer["Content-Disposition"].startswith("attachment") and len(lines) == 24
    assert [read_line(line).seq for line in lines] == [*range(1, 25)]
    assert json.loads(lines[0])["of"] == 24
    assert AuditRecord.objects.filter(act="journal.export", run=run.id, actor="victor").count() == 1


def test_the_page_says_up_to_where_the_chain_was_followed_and_when(victor: Client) -> None:
    run = incident()
    page = victor.get(url_of(run)).content.decode()
    facts = page[page.index('id="run-facts"') : page.index("</dl>", page.index('id="run-facts"'))]
    assert "Chain verified to the end, <time" in facts and "24 entries" in facts
    assert "chain verified." in page[page.index("incident record") :][:600]


def test_a_broken_chain_is_said_on_the_page_and_on_the_table(victor: Client) -> None:
    story = Story()
    story.call(order_id="o-1")
    tampered(story, 2)
    assert "Chain broken after seq 0" in victor.get(story.url).content.decode()
    assert "Chain broken after seq 0" in victor.get(f"{story.url}/journal").content.decode()


def test_the_whole_of_a_long_journal_is_drawn_for_print(victor: Client) -> None:
    story = Story()
    for _ in range(210):
        story.write(Kind.NOTE, {"text": "remark"})
    newest = victor.get(story.url).content.decode()
    assert "All, to print" in newest and "Entries 12 to 211." in newest
    whole = victor.get(f"{story.url}?all=1").content.decode()
    assert 'id="row-1"' in whole and 'id="row-211"' in whole and "data-print" in whole
