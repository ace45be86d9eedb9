"""`make docs`: every page, with a search, and nothing of anybody else's."""

import functools
import re
import runpy
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from tests.docs.manual import PAGES, ROOT
from tests.pages.browser import chromium as chromium

EMBEDDED = re.compile(
    r"""(?:<(?:script|img|iframe)[^>]*\ssrc|<link[^>]*\shref|url\()\s*=?\s*["']?((?:https?:)?//[^"')\s]+)"""
)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("built")
    [line] = [line for line in (ROOT / "Makefile").read_text().splitlines() if "-m sphinx" in line]
    words = line.split(" -m ", 1)[1].replace("docs/_build", str(folder)).split()
    done = subprocess.run([sys.executable, "-m", *words], cwd=ROOT, capture_output=True, text=True, timeout=240)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    return folder


def texts(built: Path, *kinds: str) -> Iterator[tuple[Path, str]]:
    return ((path, path.read_text()) for kind in kinds for path in built.rglob(f"*.{kind}"))


def test_every_page_is_there_and_in_a_chapter(built: Path) -> None:
    chapters: list[tuple[str, list[str]]] = runpy.run_path(str(ROOT / "docs" / "conf.py"))["CHAPTERS"]
    names = {str(page.relative_to(ROOT).with_suffix("")) for page in PAGES}
    assert {name for _, pages in chapters for name in pages} == names
    assert {name for name in names if not (built / f"{name}.html").exists()} == set()


def test_the_search_knows_the_words(built: Path) -> None:
    index = (built / "searchindex.js").read_text()
    assert all(word in index for word in ('"idempot"', "quarantin", "docs/concepts.md"))


def test_nothing_is_loaded_from_elsewhere(built: Path) -> None:
    found = {path.name: EMBEDDED.findall(text) for path, text in texts(built, "html", "css")}
    assert {name: addresses for name, addresses in found.items() if addresses} == {}


def test_a_strict_policy_lets_every_page_work(built: Path) -> None:
    inline = re.compile(r"<script(?![^>]*\ssrc=)|\sstyle=|\son\w+=")
    assert [path.name for path, text in texts(built, "html") if inline.search(text)] == []


class Strict(SimpleHTTPRequestHandler):
    """Serves files as the console does: under its policy."""

    def end_headers(self) -> None:
        policy = "; ".join(" ".join([name, *sources]) for name, sources in settings.SECURE_CSP.items())
        self.send_header("Content-Security-Policy", policy)
        super().end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Silent."""


@pytest.fixture
def address(built: Path) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Strict, directory=str(built)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.slow
def test_a_reader_finds_a_word_under_the_consoles_policy(address: str, chromium: Any) -> None:
    page = chromium.new_page()
    faults: list[str] = []
    page.on("console", lambda message: faults.append(message.text))
    page.on("request", lambda request: None if request.url.startswith(address) else faults.append(request.url))
    page.on("response", lambda answer: faults.append(answer.url) if answer.status >= 400 else None)
    page.goto(f"{address}/index.html")
    page.wait_for_url("**/README.html")
    page.fill("#q", "idempotency")
    page.press("#q", "Enter")
    page.wait_for_selector("#search-results .context")
    assert "Concepts" in page.inner_text("#search-results")
    page.click("text=Concepts >> nth=-1")
    page.wait_for_url("**/docs/concepts.html*")
    assert faults == []
    page.close()


@pytest.mark.slow
def test_the_search_works_from_a_folder_too(built: Path, chromium: Any) -> None:
    page = chromium.new_page()
    page.goto(f"file://{built}/search.html?q=idempotency")
    page.wait_for_selector("#search-results li")
    assert "Concepts" in page.inner_text("#search-results")
    page.close()
