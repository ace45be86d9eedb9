"""What holds for all markup: a strict policy, no inline style or script, small files, words that were agreed on."""

import re
from pathlib import Path

import pytest
from django.conf import settings
from django.test import Client

from runs.pages.timeline import LOOKS
from runs.templatetags.console import STATUSES
from tests.pages.journals import in_doubt

ROOT = Path(settings.BASE_DIR)
TEMPLATES = sorted((ROOT / "templates").rglob("*.html"))
SYMBOLS = set(re.findall(r'id="i-([\w-]+)"', (ROOT / "static/icons.svg").read_text()))


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: str(path.relative_to(ROOT / "templates")))
def test_a_template_has_no_inline_style_or_script_and_is_short(template: Path) -> None:
    text = template.read_text()
    assert not re.search(r'\bstyle\s*=\s*["{]', text)
    assert not re.search(r"<style|javascript:|\son\w+\s*=|hx-on", text)
    assert all("src=" in tag for tag in re.findall(r"<script[^>]*>", text))
    assert "|safe" not in text and "autoescape off" not in text
    assert len(text.splitlines()) <= 150


def test_htmx_is_not_deferred() -> None:
    """Deferred, it starts before its extension has come when the network is in the mood: no stream then."""
    assert "defer" not in re.sub(r"{#.*?#}", "", (ROOT / "templates/_page.html").read_text())


def test_every_icon_that_is_named_is_drawn() -> None:
    named = {name for path in TEMPLATES for name in re.findall(r'{% icon "([\w-]+)" %}', path.read_text())}
    named |= {f"s-{glyph}" for glyph, _ in STATUSES.values()} | {f"k-{kind}" for kind in LOOKS}
    assert named <= SYMBOLS


@pytest.mark.django_db
@pytest.mark.parametrize(
    "address",
    [
        "/login",
        "/runs",
        "{run}",
        "{run}/intents/3/reconcile",
        "{run}/signal",
        "/workers",
        "/agents",
        "/agents/refund-desk",
        "/gates/place",
        "/nowhere",
    ],
)
def test_every_page_has_the_strict_policy_and_nothing_inline(max: Client, address: str) -> None:
    story, _ = in_doubt()
    client = Client() if address == "/login" else max
    answer = client.get(address.format(run=story.url))
    policy = answer["Content-Security-Policy"]
    assert "script-src 'self';" in policy + ";" and "style-src 'self';" in policy + ";" and "unsafe" not in policy
    page = answer.content.decode()
    assert " style=" not in page and "<style" not in page and not re.search(r"<script(?![^>]*src=)", page)
