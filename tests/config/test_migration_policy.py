"""Migrations expand first and contract a release later: while they run, and after them, code of before still works.

What a migration may not do is judged by django-migration-linter from its SQL; what it may do all the same is argued.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from django.apps import apps
from django.db import connection
from django.db.migrations import Migration
from django.db.migrations.loader import MigrationLoader
from django_migration_linter import MigrationLinter

from config.environment import ROOT

# Shipped before the policy: no code of before can meet them any more.
BEFORE_THE_POLICY = {
    "journal": "0003_broken_chains",
    "runs": "0013_acted",
    "recovery": "",
}
# (migration, what the linter says): why no code of before is hurt.
ARGUED = {
    ("runs.0014_releases_and_forks", "ADD_UNIQUE"): "of a column that the same migration adds: code of before never "
    "writes it, and its default is outside of the index's condition",
    ("runs.0014_releases_and_forks", "CREATE_INDEX"): "of the releases: some rows for each agent, read in a moment",
    ("runs.0014_releases_and_forks", "CREATE_INDEX_EXCLUSIVE"): "the same",
    ("runs.0021_answer_under_way", "NOT_NULL"): "of columns of a new table, which SQL of our own makes, UNLOGGED",
    ("runs.0021_answer_under_way", "DROP_TABLE"): "the way back",
    ("runs.0022_spending", "NOT_NULL"): "of columns of new tables, which SQL of our own makes",
    ("runs.0022_spending", "CREATE_INDEX"): "of a table that the same migration makes: nobody has read it yet",
    ("runs.0022_spending", "DROP_TABLE"): "the way back",
}


@pytest.fixture
def loader(transactional_db: None) -> MigrationLoader:
    return MigrationLoader(connection)


def said_of(migration: Migration, *, excused: bool = True, capsys: pytest.CaptureFixture[str]) -> str:
    """What the linter has against it; empty: nothing."""
    name = f"{migration.app_label}.{migration.name}"
    codes = [code for argued, code in ARGUED if argued == name] if excused else []
    linter = MigrationLinter(no_cache=True, all_warnings_as_errors=True, exclude_migration_tests=codes)
    linter.lint_migration(migration)
    told = capsys.readouterr().out
    return told if linter.has_errors else ""


def test_no_migration_hurts_the_code_that_still_runs(
    loader: MigrationLoader, capsys: pytest.CaptureFixture[str]
) -> None:
    later = [
        m
        for (room, name), m in loader.disk_migrations.items()
        if room in BEFORE_THE_POLICY and name > BEFORE_THE_POLICY[room]
    ]
    assert {m.app_label for m in later} == {"runs", "recovery"}
    assert [said for m in later if (said := said_of(m, capsys=capsys))] == []


def test_each_argued_exception_is_needed(loader: MigrationLoader, capsys: pytest.CaptureFixture[str]) -> None:
    for name in {name for name, _ in ARGUED}:
        room, _, migration = name.partition(".")
        assert said_of(loader.disk_migrations[room, migration], excused=False, capsys=capsys), f"{name} is clean"


@pytest.mark.parametrize(
    ("named", "why"),
    [
        ("0002_drop_a_column", "DROPPING columns"),
        ("0003_require_a_column", "NOT NULL constraint on columns"),
        ("0004_rename_a_column", "RENAMING columns"),
        ("0005_index_in_a_transaction", "CREATE INDEX locks table"),
    ],
)
def test_what_contracts_at_once_is_refused(
    named: str, why: str, transactional_db: None, settings: object, capsys: pytest.CaptureFixture[str]
) -> None:
    settings.MIGRATION_MODULES = {"recovery": "tests.config.contracting"}  # type: ignore[attr-defined]
    bad = MigrationLoader(connection).disk_migrations["recovery", named]
    assert why in said_of(bad, capsys=capsys)


def test_every_room_that_has_migrations_is_judged(loader: MigrationLoader) -> None:
    own = {app.label for app in apps.get_app_configs() if Path(app.path).parent == ROOT}
    assert own & loader.migrated_apps == set(BEFORE_THE_POLICY)
