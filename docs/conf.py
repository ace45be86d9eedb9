"""How the manual is built: Sphinx with MyST, in the console's own colours, and no address outside.

`make docs` builds into docs/_build; every warning is an error there, so a link that leads nowhere fails.
"""

import re
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

project = "Holdfast"
copyright = "Holdfast's contributors"
html_title = "Holdfast"
extensions = ["myst_parser"]
myst_heading_anchors = 4
nitpicky = True

# The source folder is the repository's, so that README and CHANGELOG are pages like the others.
root_doc = "README"
include_patterns = ["README.md", "CHANGELOG.md", "docs/*.md"]
# Not looked into at all: they are large, or somebody writes into them.
exclude_patterns = [".*", "var", "bench", "tests", "static", "runs", "journal", "recovery", "config", "demo"]
suppress_warnings = ["toc.not_included"]  # CHAPTERS is the table of contents; a test looks that it has every page

CHAPTERS = [
    ("Begin", ["README", "docs/index", "docs/demo", "docs/concepts"]),
    (
        "Write agents",
        [
            "docs/writing-agents",
            "docs/model-agents",
            "docs/bring-your-agent",
            "docs/waiting",
            "docs/limits",
            "docs/choosing-an-effect-class",
            "docs/testing-agents",
        ],
    ),
    (
        "Run them",
        ["docs/operating", "docs/deploying", "docs/releases", "docs/replay", "docs/forks", "docs/recovery-drills"],
    ),
    ("Look up", ["docs/commands", "docs/api", "docs/journal-format", "docs/performance", "docs/architecture"]),
    ("Changes", ["CHANGELOG"]),
]

html_theme = "_theme"
html_theme_path = ["."]
html_static_path = ["../static/base.css", "../static/console.js", "../static/favicon.svg"]
html_copy_source = False
html_show_sourcelink = False
html_use_index = False
html_domain_indices = False
html_additional_pages = {"index": "index.html"}
# The console's icons stand in the page itself: opened from a folder, it may take none from another file.
SPRITE = (Path(__file__).parents[1] / "static" / "icons.svg").read_text()
ICONS = dict(re.findall(r'<symbol id="i-(\w+)"[^>]*>(.*?)</symbol>', SPRITE, re.DOTALL))
html_context = {"chapters": CHAPTERS, "icons": ICONS}


def show_files_of_the_repository(app: Sphinx, page: str, source: list[str]) -> None:
    """A link to a file that is no page is a download; MyST wants that said."""
    source[0] = source[0].replace("](LICENSE)", "](path:LICENSE)")


def title_pages(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    context["title_of"] = {name: title.astext() for name, title in app.env.titles.items()}


def setup(app: Sphinx) -> None:
    app.connect("source-read", show_files_of_the_repository)
    app.connect("html-page-context", title_pages)
