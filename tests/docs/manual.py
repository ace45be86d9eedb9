"""The manual as tests read it: its pages, their fenced blocks with the marks before them, their links and headings.

A mark is an HTML comment before a fence: `<!-- file: NAME -->` names the module that a block is, `<!-- exit: N -->` the
exit code that a command must have, `<!-- again: S -->` lets it fail at first, for at most S seconds.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]

FENCE = re.compile(r"^((?:<!-- .+ -->\n)*)```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MARK = re.compile(r"<!-- (\w+): (.+?) -->")
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Block:
    page: Path
    line: int
    language: str
    text: str
    marks: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.page.name}:{self.line}"


def blocks(language: str) -> list[Block]:
    return [block for page in PAGES for block in blocks_of(page) if block.language == language]


def blocks_of(page: Path) -> list[Block]:
    text = page.read_text()
    return [
        Block(page, text.count("\n", 0, found.start(2)) + 1, found[2], found[3], dict(MARK.findall(found[1])))
        for found in FENCE.finditer(text)
    ]


def prose_of(page: Path) -> str:
    """Without what is fenced, where a bracket is no link and a # no heading."""
    return FENCE.sub("", page.read_text())


def links_of(page: Path) -> list[str]:
    return LINK.findall(prose_of(page))


def anchors_of(page: Path) -> set[str]:
    """As GitHub makes them."""
    headings = HEADING.findall(prose_of(page))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
