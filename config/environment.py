"""Everything Holdfast reads from the environment, in one typed value."""

import os
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from django.core.exceptions import ImproperlyConfigured
from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from config.embedded import socket_folder

ROOT = Path(__file__).resolve().parent.parent
DEMO_AGENTS = "demo.agents"


@dataclass(frozen=True, slots=True)
class Environment:
    """The values of architecture section 5, with their defaults filled in. Seconds and bytes are plain numbers."""

    data: Path
    database: Mapping[str, str]
    database_is_embedded: bool
    broker_url: str
    broker_is_embedded: bool
    agents: tuple[str, ...]
    port: int
    region: str
    lease_seconds: float
    sweep_seconds: float
    grace_seconds: float
    payload_limit: int
    streams: int
    store_url: str
    redact: str
    proxies: int | None
    hosts: tuple[str, ...]
    secret_key: str

    @property
    def dsn(self) -> str:
        """The database as a libpq connection string, for raw psycopg."""
        return make_conninfo("", **self.database)

    @property
    def broker_is_rabbitmq(self) -> bool:
        return self.broker_url.startswith(("amqp://", "amqps://"))


def read_environment(given: Mapping[str, str] = os.environ) -> Environment:
    """Reads `given`; raises ImproperlyConfigured naming the variable that cannot be understood."""
    data = Path(given.get("HOLDFAST_DATA") or ROOT / "var").expanduser().resolve()
    database_url, broker_url = given.get("DATABASE_URL", ""), given.get("BROKER_URL", "")
    return Environment(
        data=data,
        database=_database(database_url) if database_url else embedded_database(data),
        database_is_embedded=not database_url,
        broker_url=broker_url or embedded_broker_url(data),
        broker_is_embedded=not broker_url,
        agents=_agents(given),
        port=int(_number(given, "HOLDFAST_PORT", 8000)),
        region=given.get("HOLDFAST_REGION") or "local",
        lease_seconds=_number(given, "HOLDFAST_LEASE_SECONDS", 10),
        sweep_seconds=_number(given, "HOLDFAST_SWEEP_SECONDS", 2),
        grace_seconds=_number(given, "HOLDFAST_GRACE_SECONDS", 25),
        payload_limit=int(_number(given, "HOLDFAST_PAYLOAD_LIMIT", 32768)),
        streams=int(_number(given, "HOLDFAST_STREAMS", 400)),
        store_url=given.get("HOLDFAST_STORE_URL", ""),
        redact=_pattern(given, "HOLDFAST_REDACT"),
        proxies=_proxies(given),
        hosts=_words(given.get("HOLDFAST_HOSTS", "")) or ("localhost", "127.0.0.1", "[::1]"),
        secret_key=given.get("SECRET_KEY") or _kept_secret_key(data) or secrets.token_urlsafe(50),
    )


def embedded_database(data: Path) -> dict[str, str]:
    """libpq parameters of the embedded PostgreSQL of a data folder."""
    return {"host": str(socket_folder(data / "pg")), "user": "holdfast", "dbname": "holdfast"}


def embedded_broker_url(data: Path) -> str:
    return f"redis+socket://{quote(str(socket_folder(data / 'broker') / 'valkey.sock'))}"


def secret_key_file(data: Path) -> Path:
    """Where `up` keeps the key it made; every process that is given no SECRET_KEY reads it from there."""
    return data / "secret-key"


def _kept_secret_key(data: Path) -> str:
    try:
        return secret_key_file(data).read_text().strip()
    except OSError:
        return ""


def _database(url: str) -> dict[str, str]:
    try:
        return {name: str(value) for name, value in conninfo_to_dict(url).items() if value is not None}
    except ProgrammingError as error:
        raise ImproperlyConfigured(f"DATABASE_URL is not a PostgreSQL address: {str(error).strip()}") from None


def _agents(given: Mapping[str, str]) -> tuple[str, ...]:
    """Modules that define agents. HOLDFAST_AGENTS adds to the demo's, HOLDFAST_DEMO=0 (`up --no-demo`) drops those."""
    demo = () if given.get("HOLDFAST_DEMO") == "0" else (DEMO_AGENTS,)
    return tuple(dict.fromkeys(demo + _words(given.get("HOLDFAST_AGENTS", ""))))


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())


def _proxies(given: Mapping[str, str]) -> int | None:
    said = given.get("HOLDFAST_PROXIES")
    return None if not said else 0 if said == "0" else int(_number(given, "HOLDFAST_PROXIES", 1))


def _pattern(given: Mapping[str, str], name: str) -> str:
    text = given.get(name, "")
    try:
        re.compile(text)
    except re.error as error:
        raise ImproperlyConfigured(f"{name} is no regular expression: {error}") from error
    return text


def _number(given: Mapping[str, str], name: str, default: float) -> float:
    try:
        number = float(given.get(name) or default)
    except ValueError:
        number = 0
    if not 0 < number < 2**53:
        raise ImproperlyConfigured(f"{name} must be a number above zero, not {given[name]!r}.")
    return number
