"""Test databases: clones of a template, emptied between tests, and cloned anew when a test changed more than rows.

A clone takes some tenths of a second, and a test often less. What a test can do to a database beyond its rows shows in
the catalogs: tables, functions, partitions, settings, statistics.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

MOST_TIMES = 50  # that one is emptied: dead rows stay where they were
LARGE = 2 * 2**20  # bytes of a table from which on a clone is quicker
OWN = 16_384  # ids of what PostgreSQL brings along are below
# Rows of the catalogs that belong to the database's own things, by who wrote them: any change of them is another sum.
SHAPE = f"""
SELECT concat_ws(' ',
 (SELECT concat_ws(',', count(*), sum(xmin::text::bigint), sum(relpages)) FROM pg_class WHERE oid >= {OWN}),
 (SELECT concat_ws(',', count(*), sum(xmin::text::bigint)) FROM pg_attribute WHERE attrelid >= {OWN}),
 (SELECT concat_ws(',', count(*), sum(xmin::text::bigint)) FROM pg_proc WHERE oid >= {OWN}),
 (SELECT concat_ws(',', count(*), sum(xmin::text::bigint)) FROM pg_trigger WHERE tgrelid >= {OWN}),
 (SELECT concat_ws(',', count(*), sum(xmin::text::bigint)) FROM pg_constraint WHERE conrelid >= {OWN}),
 (SELECT count(*) FROM pg_statistic WHERE starelid >= {OWN}),
 (SELECT concat_ws(',', count(*), sum(xmin::text::bigint)) FROM pg_type WHERE oid >= {OWN}),
 (SELECT concat_ws(',', count(*), sum(xmin::text::bigint)) FROM pg_namespace),
 (SELECT concat_ws(',', count(*), sum(xmin::text::bigint)) FROM pg_extension),
 (SELECT count(*) FROM pg_largeobject_metadata),
 (SELECT count(*) FROM pg_db_role_setting WHERE setdatabase = (SELECT oid FROM pg_database
                                                               WHERE datname = current_database())))
"""
TABLES = "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace ORDER BY 1"
SEQUENCES = "SELECT sequencename, start_value, last_value FROM pg_sequences ORDER BY 1"
OTHERS = """
SELECT pg_terminate_backend(pid, 20000) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type <> 'autovacuum launcher'
"""

type Connection = psycopg.Connection[Any]


@dataclass
class Databases:
    """`server` is libpq's parameters without a database name; `template` a database that nobody is connected to."""

    server: dict[str, str]
    template: str
    _kept: dict[str, Kept] = field(default_factory=dict)

    def dsn(self, name: str) -> str:
        return make_conninfo("", **self.server, dbname=name)

    def renew(self, name: str) -> None:
        """Makes the database, or makes it as new; whoever is connected to it is thrown out."""
        kept = self._kept.get(name)
        if kept is None or kept.times == MOST_TIMES or not self._emptied(name, kept):
            self._clone(name)

    def _clone(self, name: str) -> None:
        with psycopg.connect(self.dsn("postgres"), autocommit=True) as admin:
            admin.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))
            copy = sql.SQL("CREATE DATABASE {} TEMPLATE {}")
            admin.execute(copy.format(sql.Identifier(name), sql.Identifier(self.template)))
        with psycopg.connect(self.dsn(name), autocommit=True) as conn:
            self._kept[name] = Kept.of(conn)

    def _emptied(self, name: str, kept: Kept) -> bool:
        try:
            # As a replica no trigger fires: those of the journal refuse every change.
            with psycopg.connect(self.dsn(name), options="-c session_replication_role=replica") as conn:
                conn.execute(OTHERS)
                return kept.restore(conn)
        except psycopg.OperationalError:  # the test dropped it
            return False


@dataclass
class Kept:
    """What a clone was when it was new: its shape, its sequences, and of each table that has rows a digest of them."""

    shape: str
    tables: list[str]
    sequences: list[tuple[str, int, int | None]]
    seeds: dict[str, str]
    times: int = 0

    @classmethod
    def of(cls, conn: Connection) -> Kept:
        tables = [name for (name,) in conn.execute(TABLES)]
        seeds = {name: digest(conn, name) for name in filled(conn, tables)}
        return cls(shape_of(conn), tables, conn.execute(SEQUENCES).fetchall(), seeds)

    def restore(self, conn: Connection) -> bool:
        """Whether the database is as new now."""
        self.times += 1
        if shape_of(conn) != self.shape:
            return False
        written = [name for name in filled(conn, self.tables) if name not in self.seeds]
        if any(digest(conn, name) != was for name, was in self.seeds.items()) or any(
            size(conn, name) > LARGE for name in written
        ):
            return False
        for name in written:
            conn.execute(sql.SQL("DELETE FROM {}").format(sql.Identifier(name)))
        for (name, start, was), (_, _, now) in zip(self.sequences, conn.execute(SEQUENCES).fetchall(), strict=True):
            if now != was:
                conn.execute("SELECT setval(%s::regclass, %s, %s)", (name, was or start, was is not None))
        return True


def shape_of(conn: Connection) -> str:
    ((shape,),) = conn.execute(SHAPE.encode()).fetchall()
    return str(shape)


def filled(conn: Connection, tables: list[str]) -> list[str]:
    asked = sql.SQL("SELECT {} WHERE EXISTS (SELECT FROM {})")
    each = (asked.format(sql.Literal(name), sql.Identifier(name)) for name in tables)
    return [name for (name,) in conn.execute(sql.SQL(" UNION ALL ").join(each))]


def digest(conn: Connection, table: str) -> str:
    asked = sql.SQL("SELECT md5(string_agg(t::text, chr(10) ORDER BY t::text)) FROM {} t")
    ((found,),) = conn.execute(asked.format(sql.Identifier(table))).fetchall()
    return str(found)


def size(conn: Connection, table: str) -> int:
    ((found,),) = conn.execute("SELECT pg_relation_size(%s::regclass)", (table,)).fetchall()
    return int(found)
