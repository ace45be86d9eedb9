"""What `manage.py doctor` looks at. A finding is a line; a fault is a finding that must be put right."""

import platform
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from urllib.parse import quote, urlencode

import django
from django.conf import settings
from django.db import DatabaseError, connection
from psycopg.conninfo import conninfo_to_dict

from config.celery import app
from config.health import readiness_faults
from journal.durability import durability_faults
from journal.partitions import partition_faults

OLDEST_SERVER = 150000
SHOWN = "********"


@dataclass(frozen=True, slots=True)
class Finding:
    what: str
    words: str
    fault: bool = False


def findings() -> Iterator[Finding]:
    yield Finding("database", database_url())
    yield Finding("python", f"{platform.python_version()}, Django {django.get_version()}, Celery {version('celery')}")
    try:
        yield from _server()
    except DatabaseError as error:
        yield Finding("server", f"does not answer: {str(error).strip()}", fault=True)
    yield _broker()


def database_url(*, hide_password: bool = True) -> str:
    """The database as a URL that psql and DATABASE_URL accept. The password is hidden unless asked for."""
    given = {name: str(value) for name, value in conninfo_to_dict(settings.HOLDFAST_DSN).items()}
    user, password = given.pop("user", ""), given.pop("password", "")
    name, host, port = given.pop("dbname", ""), given.pop("host", ""), given.pop("port", "")
    if host.startswith("/"):  # a socket folder has no place before the slash
        given, host = {"host": host} | given, ""
    secret = f":{SHOWN if hide_password else quote(password, safe='')}" if password else ""
    before = f"{quote(user, safe='')}{secret}@" if user else ""
    after = f":{port}" if port else ""
    query = f"?{urlencode(given, safe='/')}" if given else ""
    return f"postgresql://{before}{host}{after}/{quote(name, safe='')}{query}"


def _server() -> Iterator[Finding]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('server_version'), current_setting('server_version_num')::int")
        words, number = cursor.fetchone()
    yield Finding("server", f"PostgreSQL {words}", fault=number < OLDEST_SERVER)
    lost = durability_faults()
    yield Finding("durability", "; ".join(lost) or "fsync and full_page_writes are on", fault=bool(lost))
    behind = readiness_faults()
    yield Finding("migrations", "; ".join(behind) or "all applied", fault=bool(behind))
    missing = partition_faults()
    yield Finding("partitions", "; ".join(missing) or "made for the months ahead", fault=bool(missing))


def _broker() -> Finding:
    try:
        with app.connection_for_write() as broker:
            broker.ensure_connection(max_retries=1, timeout=2)
            return Finding("broker", broker.as_uri())
    except Exception as error:  # each transport has its own; whatever it is, runs go on by the sweep alone
        return Finding("broker", f"does not answer, runs start slowly: {error}", fault=True)
