"""What the apps read from Django's settings, where a project does not say it: from the environment, or usual."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error
from django.db import connections
from psycopg.conninfo import make_conninfo

DRIVERS = ("prepare_threshold", "autocommit")


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())


def _is_set(text: str) -> bool:
    return text == "1"


# How the variable of that name is read, and what holds without one.
USUAL: Mapping[str, tuple[Callable[[str], Any], Any]] = {
    "HOLDFAST_DATA": (str, ""),
    "HOLDFAST_STORE_URL": (str, ""),
    "HOLDFAST_PAYLOAD_LIMIT": (int, 32_768),
    "HOLDFAST_BROKER_URL": (str, ""),
    "HOLDFAST_AGENTS": (_words, ()),
    "HOLDFAST_REDACT": (str, ""),
    "HOLDFAST_REGION": (str, "local"),
    "HOLDFAST_LEASE_SECONDS": (float, 10.0),
    "HOLDFAST_SWEEP_SECONDS": (float, 2.0),
    "HOLDFAST_GRACE_SECONDS": (float, 25.0),
    "HOLDFAST_PROXIES": (int, 0),
    "HOLDFAST_ALLOW_REDEFINE": (_is_set, False),
    "HOLDFAST_PROMOTE": (_is_set, False),
    "HOLDFAST_ALLOW_NO_FSYNC": (lambda text: text == "tests", False),
}


def supply() -> None:
    """Sets what is not set; what a project says itself stays."""
    for name, (read, usual) in USUAL.items():
        if not hasattr(settings, name):
            given = os.environ.get(name)
            setattr(settings, name, read(given) if given else usual)
    if not hasattr(settings, "HOLDFAST_DSN") and is_postgres():
        settings.HOLDFAST_DSN = dsn_of(connections["default"].get_connection_params())


def is_postgres() -> bool:
    return connections["default"].vendor == "postgresql"


def dsn_of(params: Mapping[str, Any]) -> str:
    """Without what only Django and psycopg understand."""
    texts = {name: value for name, value in params.items() if isinstance(value, (str, int)) and name not in DRIVERS}
    return make_conninfo("", **texts)


def check_project(**_kwargs: Any) -> list[CheckMessage]:
    """For a project that has taken the apps among its own."""
    found: list[CheckMessage] = []
    if not is_postgres():
        found.append(Error(
            "Holdfast keeps its journal in DATABASES['default'], which has to be PostgreSQL.",
            hint="From a project on another database start runs by the API: docs/api.md.", id="journal.E001",
        ))  # fmt: skip
    if not (settings.HOLDFAST_DATA or settings.HOLDFAST_STORE_URL):
        found.append(Error(NO_STORE, hint=STORE_HINT, id="journal.E002"))
    return found


NO_STORE = "Neither HOLDFAST_DATA nor HOLDFAST_STORE_URL is set: large inputs would have no place."
STORE_HINT = "Set the same as for Holdfast's workers, in settings or in the environment."
