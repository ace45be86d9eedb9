"""No block of the manual is passed over: each language has its proof, and each block is met by one."""

import pytest

from tests.docs.manual import PAGES, blocks, blocks_of
from tests.docs.modules import AGENTS, PAGES_WITH_PYTHON, TESTS
from tests.docs.test_run import SERVED, UP, WEB, is_finite
from tests.docs.test_run import TESTS as RUN_BY_MAKE

# language: who proves it
PROOFS = {
    "python": "test_guide.py and test_examples.py import it with its page and run its agents and tests",
    "sh": "test_run.py types it beside an `up` of its own",
    "sql": "test_run.py executes it there",
    "json": "test_examples.py parses it",
    "text": "no code: SHOWN says where and what",
}
SHOWN = {
    "architecture.md": "the folders of the repository; test_link.py looks for those that are named",
    "api.md": "what a stream looks like; tests/api/test_stream.py reads a real one",
    "journal-format.md": "the formula of a link; tests/journal/test_chain.py computes it",
}


def test_every_block_has_a_language_that_is_proven() -> None:
    assert {
        f"{block} {block.language}" for page in PAGES for block in blocks_of(page) if block.language not in PROOFS
    } == set()


def test_only_drawings_are_not_run() -> None:
    assert {block.page.name for block in blocks("text")} == set(SHOWN)


@pytest.mark.parametrize("block", blocks("sh"), ids=str)
def test_every_command_is_run_or_is_what_runs_the_others(block) -> None:  # type: ignore[no-untyped-def]
    text = block.text.strip()
    assert is_finite(block) or text in UP | RUN_BY_MAKE or SERVED.match(text) or WEB.match(text)


def test_every_page_with_python_has_something_that_runs() -> None:
    assert set(PAGES_WITH_PYTHON) == set(AGENTS.values()) | {page for page, _, _ in TESTS}


def test_marks_are_known() -> None:
    marks = {mark for page in PAGES for block in blocks_of(page) for mark in block.marks}
    assert marks <= {"file", "exit", "again"}
