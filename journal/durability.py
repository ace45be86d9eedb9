"""Server settings under which a committed entry can be lost."""

from django.db import connection

from journal.append import Conn

_NEEDED = {
    "fsync": "a crash of the machine can lose or damage what was committed",
    "full_page_writes": "a crash of the machine can damage pages that were being written",
}


def durability_faults(conn: Conn | None = None) -> list[str]:
    """Empty if the journal can trust the database."""
    with (conn or connection).cursor() as cursor:
        cursor.execute("SELECT name FROM pg_settings WHERE name = ANY (%s) AND setting <> 'on'", (list(_NEEDED),))
        return [f"{name} is off: {_NEEDED[name]}" for (name,) in cursor.fetchall()]
