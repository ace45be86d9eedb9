from pathlib import Path

import pytest
from django.conf import settings
from django.test import Client

from journal.payloads import payload_store
from tests.pages.journals import Story

pytestmark = pytest.mark.django_db


def test_a_payload_outside_the_entry_is_previewed_and_downloaded_exactly(victor: Client) -> None:
    story = Story()
    story.call()
    pointer = payload_store().put(story.run.id, "<script>alert(1)</script>" * 5000)
    seq = story.result(pointer)
    page = victor.get(f"{story.url}?seq={seq}&tab=pointers").content.decode()
    for said in (pointer.sha256[8:], "122.1\xa0KB", "125000 bytes", "&lt;script&gt;", "Bytes match the hash"):
        assert said in page
    assert "<script>alert" not in page
    answer = victor.get(f"{story.url}/entries/{seq}/payloads/{pointer.sha256}")
    assert answer.content == b"<script>alert(1)</script>" * 5000
    assert (
        answer["Content-Disposition"].startswith("attachment") and answer["Content-Type"] == "application/octet-stream"
    )


def test_a_missing_payload_is_said_to_be_missing_and_the_page_stands(victor: Client) -> None:
    story = Story()
    story.call()
    pointer = payload_store().put(story.run.id, b"\x00" * 40_000)
    seq = story.result(pointer)
    payload_store().delete(pointer)
    page = victor.get(f"{story.url}?seq={seq}&tab=pointers")
    assert page.status_code == 200 and b"A stored payload is missing." in page.content and b"Missing" in page.content
    assert victor.get(f"{story.url}?seq={seq}").status_code == 200


def test_a_payload_that_is_not_what_was_written_is_said_to_be_so_and_is_not_shown(victor: Client) -> None:
    story = Story()
    story.call()
    pointer = payload_store().put(story.run.id, "as written " * 4000)
    seq = story.result(pointer)
    folder = Path(settings.HOLDFAST_DATA) / "payloads" / str(story.run.id)
    (folder / pointer.sha256).write_text("forged")
    page = victor.get(f"{story.url}?seq={seq}&tab=pointers").content.decode()
    assert "Bytes do not match the hash" in page and "forged" not in page and "Download" not in page


def test_a_digest_that_the_entry_does_not_name_is_not_found(victor: Client) -> None:
    story = Story()
    assert victor.get(f"{story.url}/entries/1/payloads/{'0' * 64}").status_code == 404
