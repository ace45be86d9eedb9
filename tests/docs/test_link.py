"""Nothing in the manual leads nowhere."""

import re

import pytest

from tests.docs.manual import PAGES, ROOT, anchors_of, blocks_of, links_of

LANGUAGES = {"sh", "python", "sql", "text"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files_and_headings_that_exist(page) -> None:  # type: ignore[no-untyped-def]
    lost = []
    for link in links_of(page):
        if link.startswith("https://"):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or not target.is_relative_to(ROOT) or (anchor and anchor not in anchors_of(target)):
            lost.append(link)
    assert lost == []


def test_every_page_is_reached_from_the_index() -> None:
    index = ROOT / "docs" / "index.md"
    reached = {(index.parent / link).resolve() for link in links_of(index)}
    assert set(PAGES) - reached - {index} == set()


def test_every_fenced_block_says_its_language() -> None:
    strange = {str(block): block.language for page in PAGES for block in blocks_of(page)}
    assert {name: language for name, language in strange.items() if language not in LANGUAGES} == {}


def test_images_are_small_enough_to_load() -> None:
    images = list((ROOT / "docs" / "images").iterdir())
    assert images and all(image.stat().st_size < 300_000 for image in images)


def test_sources_and_tests_that_are_named_exist() -> None:
    path = re.compile(r"`((?:tests|runs|demo|config)/[\w/]+(?:\.py|/))")
    named = {found for page in PAGES for found in path.findall(page.read_text())}
    assert named and {name for name in named if not (ROOT / name).exists()} == set()
