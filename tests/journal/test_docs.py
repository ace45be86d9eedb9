from pathlib import Path

from django.conf import settings

from journal.entries import STEERING, Kind
from journal.tags import _READERS

PAGE = (Path(settings.BASE_DIR) / "docs" / "journal-format.md").read_text()


def test_the_page_on_the_format_names_every_kind_tag_and_verdict() -> None:
    assert [kind for kind in Kind if kind not in PAGE] == []
    # frozenset stands beside set, time beside datetime, UUID beside Decimal
    assert [tag for tag in _READERS if f'"$":"{tag}"' not in PAGE] == ["time", "set", "frozenset"]
    assert all(kind in PAGE for kind in STEERING)
    assert all(
        f"`{verdict}`" in PAGE
        for verdict in ("written", "already", "refused", "settled", "lost", "busy", "no such run")
    )
