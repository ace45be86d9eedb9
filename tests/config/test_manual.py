"""The manual beside the console."""

from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from config import manual


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "_build"
    (folder / "docs").mkdir(parents=True)
    (folder / "index.html").write_text("<title>Holdfast</title>")
    (folder / "docs" / "concepts.html").write_text("<title>Concepts</title>")
    (folder / "searchindex.js").write_text("Search.setIndex({})")
    (tmp_path / "secret.html").write_text("not for you")
    monkeypatch.setattr(manual, "BUILT", folder)
    return folder


@pytest.mark.parametrize(
    ("address", "kind", "text"),
    [
        ("/docs/", "text/html", "Holdfast"),
        ("/docs/docs/concepts.html", "text/html", "Concepts"),
        ("/docs/searchindex.js", "text/javascript", "setIndex"),
    ],
)
def test_anybody_may_read_it_under_the_consoles_policy(built: Path, address: str, kind: str, text: str) -> None:
    answer = Client().get(address)
    assert (answer.status_code, answer["Content-Type"]) == (200, kind)
    assert text in answer.content.decode()
    assert "script-src 'self'" in answer["Content-Security-Policy"]


def test_what_a_browser_has_already_is_not_sent_again(built: Path) -> None:
    etag = Client().get("/docs/")["ETag"]
    assert Client().get("/docs/", headers={"If-None-Match": etag}).status_code == 304


@pytest.mark.django_db
@pytest.mark.parametrize(
    "address", ["/docs/nothing.html", "/docs/docs/", "/docs/../secret.html", "/docs/%2e%2e/secret.html"]
)
def test_nothing_else_is_served(built: Path, address: str) -> None:
    assert Client().get(address).status_code == 404


@pytest.mark.django_db
def test_where_it_was_not_built_there_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    monkeypatch.setattr(manual, "BUILT", tmp_path / "nowhere")
    answer = Client().get("/docs/")
    assert answer.status_code == 404 and b"run `make docs`" in answer.content
