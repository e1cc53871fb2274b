"""Clauses of ALTER TABLE that may change rows or the meaning of columns, and those that do not."""

from __future__ import annotations

import pytest

from ibbmaster.event.statement.altering import (
    AddColumn,
    AddForeignKey,
    AddVersioning,
    ChangeColumn,
    ChangeRows,
    DropColumn,
    DropConstraint,
    MoveRows,
    SetDefault,
)
from ibbmaster.event.statement.operations import operations_of


def clauses(text):
    return list(operations_of(f"ALTER TABLE t {text}", "d")[0].clauses)


HARMLESS = (
    *("ADD INDEX (a)", "ADD UNIQUE KEY u (a), ADD FULLTEXT (b)", "DROP INDEX a, DROP PRIMARY KEY, ADD PRIMARY KEY (b)"),
    *("ROW_FORMAT=DYNAMIC COMMENT='x'", "COMMENT 'a, DROP COLUMN b'", "AUTO_INCREMENT=7, FORCE", "ORDER BY a, b"),
    *("ADD PARTITION (PARTITION p VALUES LESS THAN (5))", "REORGANIZE PARTITION p, q INTO (PARTITION r VALUES IN (1))"),
    *("REMOVE PARTITIONING", "PARTITION BY HASH (a) PARTITIONS 4", "COALESCE PARTITION 2", "REBUILD PARTITION p, q"),
    *(
        "ADD CONSTRAINT c CHECK (a > 0)",
        "DISABLE KEYS",
        "ALTER INDEX i IGNORED",
        "RENAME INDEX a TO b",
        "NOWAIT ADD KEY (a)",
    ),
    *("ADD FOREIGN KEY (a) REFERENCES p (a)", "CONVERT TO CHARACTER SET utf8mb4", "DEFAULT CHARACTER SET latin1"),
    *("ADD PERIOD FOR p (a, b)", "ADD VECTOR INDEX (v)", "FROBNICATION = 1"),
)


@pytest.mark.parametrize("text", HARMLESS)
def test_clauses_that_leave_rows_as_they_are(text):
    assert clauses(text) == []


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("ADD a INT, ADD COLUMN IF NOT EXISTS (b INT, c INT, KEY (b))", [AddColumn] * 3),
        ("ADD COLUMN a INT REFERENCES p (a) ON DELETE CASCADE", [AddColumn, AddForeignKey]),
        ("ADD vector INT, ADD period INT", [AddColumn, AddColumn]),
        ("ADD CONSTRAINT c FOREIGN KEY IF NOT EXISTS (a) REFERENCES p (a) ON UPDATE CASCADE", [AddForeignKey]),
        ("DROP a, DROP COLUMN IF EXISTS b, DROP FOREIGN KEY c", [DropColumn, DropColumn, DropConstraint]),
        ("MODIFY a BIGINT, CHANGE COLUMN b c INT AFTER a, RENAME COLUMN d TO e", [ChangeColumn] * 3),
        ("ALTER a SET DEFAULT 5, ALTER COLUMN b DROP DEFAULT", [SetDefault, SetDefault]),
        ("ADD SYSTEM VERSIONING", [AddVersioning]),
        ("DROP SYSTEM VERSIONING", [ChangeRows]),
        ("DROP PARTITION p, q", [ChangeRows]),
        ("TRUNCATE PARTITION p, q", [ChangeRows]),
        ("DISCARD TABLESPACE", [ChangeRows]),
        ("CONVERT TO CHARACTER SET latin1", [ChangeRows]),
        ("EXCHANGE PARTITION p WITH TABLE u", [MoveRows]),
        ("CONVERT TABLE u TO PARTITION p VALUES LESS THAN (5)", [MoveRows]),
        ("CONVERT PARTITION p TO TABLE u", [MoveRows]),
        ("FROBNICATE a", [ChangeRows]),
        ("`add` a", [ChangeRows]),
    ],
)
def test_clauses_that_change_columns_or_rows(text, kinds):
    assert [type(clause) for clause in clauses(text)] == kinds


def test_alter_ignore_may_remove_rows():
    (alter,) = operations_of("ALTER IGNORE TABLE t ADD UNIQUE (a)", "d")
    assert alter.clauses == (ChangeRows(what="ALTER IGNORE TABLE"),)
