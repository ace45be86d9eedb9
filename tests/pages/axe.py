"""What axe finds on a page that people with other senses and hands cannot use."""

from __future__ import annotations

from typing import Any

from axe_playwright_python.sync_playwright import Axe

OPTIONS = {"resultTypes": ["violations"]}


def faults(page: Any) -> list[str]:
    """One line a rule that is broken: its id, and the elements."""
    found = Axe().run(page, options=OPTIONS).response["violations"]
    return [f"{rule['id']}: {', '.join(node['target'][0] for node in rule['nodes'][:5])}" for rule in found]
