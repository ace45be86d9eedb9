"""Monthly partitions of journal_entry, made ahead so that the default one stays empty."""

from datetime import date

from django.db import connection

from journal.append import Conn


def missing_partitions(conn: Conn | None = None) -> list[date]:
    """First days of the months, from the last one to a year ahead, that have no partition."""
    with (conn or connection).cursor() as cursor:
        cursor.execute("SELECT * FROM journal_missing_partitions()")
        return [row[0] for row in cursor.fetchall()]


def ensure_partitions(conn: Conn | None = None) -> list[str]:
    """Makes the missing ones while appends go on. Returns their names. An error of the database if the default
    partition holds rows of such a month."""
    made = []
    for month in missing_partitions(conn):
        with (conn or connection).cursor() as cursor:
            cursor.execute("SELECT journal_make_partition(%s)", (month,))
            row = cursor.fetchone()
            assert row is not None
            made.append(row[0])
    return made


def partition_faults(conn: Conn | None = None) -> list[str]:
    """What `doctor` says about partitions."""
    faults = [f"journal_entry has no partition for {month:%Y-%m}" for month in missing_partitions(conn)]
    with (conn or connection).cursor() as cursor:
        cursor.execute("SELECT EXISTS (SELECT FROM journal_entry_default)")
        row = cursor.fetchone()
    if row is not None and row[0]:
        faults.append("journal_entry_default holds rows: partitions of their months cannot be made")
    return faults
