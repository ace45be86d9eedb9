import pytest
from django.contrib.auth.models import User
from django.test import Client

from runs.access import ensure_demo_users
from runs.pages.sharing import shared
from tests.pages.browser import chromium as chromium
from tests.pages.browser import site as site
from tests.rig.fixtures import ledger as ledger
from tests.rig.fleet import fleet as fleet

PASSWORD = "four-words-of-the-demo"


@pytest.fixture(autouse=True)
def nothing_kept() -> None:
    """What pages share for some seconds is another test's."""
    shared.clear()


@pytest.fixture
def cast(db: None) -> None:
    """Olga operates, Ada approves, Victor views, Max administers."""
    ensure_demo_users(PASSWORD)


def signed_in(name: str) -> Client:
    client = Client()
    client.force_login(User.objects.get(username=name))
    return client


@pytest.fixture
def olga(cast: None) -> Client:
    return signed_in("olga")


@pytest.fixture
def ada(cast: None) -> Client:
    return signed_in("ada")


@pytest.fixture
def victor(cast: None) -> Client:
    return signed_in("victor")


@pytest.fixture
def max(cast: None) -> Client:
    return signed_in("max")
