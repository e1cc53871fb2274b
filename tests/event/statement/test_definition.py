"""Columns and foreign keys as CREATE TABLE and ALTER TABLE define them."""

from __future__ import annotations

import pytest

from ibbmaster.event.statement.definition import (
    ForeignKey,
    is_column,
    parse_column,
    parse_constraint,
    parse_definitions,
)
from ibbmaster.sqltext.token import tokens


def column(sql: str):
    return parse_column(list(tokens(sql)))


# What rows have in a new column, as 10.11 has it; a TIMESTAMP depends on explicit_defaults_for_timestamp
@pytest.mark.parametrize(
    ("sql", "is_null_at_first"),
    [
        ("INT", True),
        ("INT NULL", True),
        ("INT DEFAULT NULL", True),
        ("INT COMMENT 'NOT NULL DEFAULT 5'", True),
        ("VARCHAR(5) COMMENT 'DEFAULT 1'", True),
        ("INT NOT NULL", False),
        ("INT DEFAULT 5", False),
        ("INT UNIQUE KEY", True),
        ("TIMESTAMP", False),
        ("TIMESTAMP NULL", True),
        ("TIMESTAMP NULL DEFAULT NULL", True),
        ("INT AUTO_INCREMENT PRIMARY KEY", False),
        ("SERIAL", False),
        ("INT AS (a + 1)", False),
    ],
)
def test_rows_have_null_in_a_new_column_unless_it_says_otherwise(sql, is_null_at_first):
    assert column(sql).is_null_at_first is is_null_at_first


@pytest.mark.parametrize(
    ("sql", "is_nullable"), [("INT", True), ("INT KEY", False), ("INT UNIQUE KEY", True), ("SERIAL", False)]
)
def test_a_key_is_not_null(sql, is_nullable):
    assert column(sql).is_nullable is is_nullable


def test_a_generated_column_is_made_of_names():
    found = column("INT GENERATED ALWAYS AS (`A b` + lower(C)) STORED")
    assert found.made_of == {"a b", "lower", "c"}
    assert column("INT").made_of is None


@pytest.mark.parametrize(
    ("sql", "found"),
    [
        ("a INT", True),
        ("`primary` INT", True),
        ("PRIMARY KEY (a)", False),
        ("CONSTRAINT c CHECK (a)", False),
        ("PERIOD FOR SYSTEM_TIME (a, b)", False),
        ("period INT", True),
        ("VECTOR INDEX (a)", False),
        ("vector INT", True),
        ("FULLTEXT (a)", False),
    ],
)
def test_a_part_of_create_table_is_a_column_or_a_key(sql, found):
    assert is_column(list(tokens(sql))) is found


KEY = ForeignKey(name="k", parent="d.p", parent_columns=("x", "y"), cascades_deletes=True, cascades_updates=False)


@pytest.mark.parametrize(
    ("sql", "names"),
    [
        ("CONSTRAINT k FOREIGN KEY (a, b) REFERENCES p (x, y) ON DELETE CASCADE", ["k"]),
        ("CONSTRAINT k FOREIGN KEY other (a, b) REFERENCES p (x, y) ON DELETE SET NULL ON UPDATE RESTRICT", ["k"]),
        ("FOREIGN KEY IF NOT EXISTS k (a, b) REFERENCES `d`.p (x, y) ON DELETE SET DEFAULT", ["k"]),
        ("FOREIGN KEY k (a) REFERENCES p (x)", []),
        ("FOREIGN KEY k (a) REFERENCES p (x) ON DELETE NO ACTION", []),
        ("CONSTRAINT CHECK (a)", []),
        ("PRIMARY KEY (a)", []),
    ],
)
def test_a_foreign_key_counts_where_it_changes_rows(sql, names):
    found = parse_constraint(list(tokens(sql)), "d")
    assert found == [KEY] * len(names)


def test_the_brackets_of_create_table_hold_columns_and_keys():
    sql = "id INT PRIMARY KEY, `p` INT REFERENCES x.p (id) ON UPDATE CASCADE, KEY (p), CHECK (id > 0)"
    columns, keys = parse_definitions(list(tokens(sql)), "d")

    assert list(columns) == ["id", "p"]
    assert [(key.parent, key.cascades_deletes, key.cascades_updates) for key in keys] == [("x.p", False, True)]
