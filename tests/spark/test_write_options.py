"""What a writer takes for its table, and what it refuses, before anything is written.

Numbers that are none: `test_options`.
"""

import pytest

from ibbmaster.errors import ConfigurationError
from ibbmaster.spark.write_options import parse_write_options


def write(**options):
    return parse_write_options({"path": "/x", "table": "a.b"} | options, {"id": "int"})


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"maxFileBytes": "16k"}, "a file has .* bytes at least"),
        ({"maxFileBytes": "65536g"}, "a file has .* at most"),
        ({"stateIntervalBytes": "16383"}, "16384 times a power of two"),
        ({"stateIntervalBytes": "48k"}, "16384 times a power of two"),
    ],
)
def test_sizes_that_a_log_cannot_have_are_refused_before_anything_is_written(options, problem):
    with pytest.raises(ConfigurationError, match=f"options maxFileBytes and stateIntervalBytes: .*{problem}"):
        write(**options)


def statement_of(fields, **options):
    (table,) = parse_write_options({"path": "/x", "table": "a.b"} | options, fields).tables().values()
    return table.statements[1]


def test_columns_of_the_key_are_not_null():
    created = statement_of({"id": "bigint", "at": "timestamp", "seen": "timestamp"}, primaryKey="id, at")

    assert created.startswith(
        "CREATE TABLE IF NOT EXISTS `a`.`b` (`id` bigint NOT NULL, `at` timestamp(6) NOT NULL, "
        "`seen` timestamp(6) null, PRIMARY KEY (`id`, `at`)) "
    )


@pytest.mark.parametrize(
    "schema",
    [
        "CREATE TABLE a.b (id text CHARACTER SET latin1)",
        "CREATE TABLE a.b (id text COLLATE latin1_swedish_ci)",
        "CREATE TABLE a.b (id text) DEFAULT CHARSET=latin1",
        "USE a; CREATE TABLE b (id text) COLLATE latin1_swedish_ci",
    ],
)
def test_a_table_that_is_declared_in_another_character_set_cannot_be_written(schema):
    with pytest.raises(ConfigurationError, match=r"^column id: .* is text in latin1, only utf8mb4 can be written$"):
        write(schema=schema)
