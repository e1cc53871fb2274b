"""What a writer takes for its table, and what it refuses, before anything is written.

Numbers that are none: `test_options`.
"""

from ibbmaster.spark.write_options import parse_write_options


def statement_of(fields, **options):
    (table,) = parse_write_options({"path": "/x", "table": "a.b"} | options, fields).tables().values()
    return table.statements[1]


def test_columns_of_the_key_are_not_null():
    created = statement_of({"id": "bigint", "at": "timestamp", "seen": "timestamp"}, primaryKey="id, at")

    assert created.startswith(
        "CREATE TABLE IF NOT EXISTS `a`.`b` (`id` bigint NOT NULL, `at` timestamp(6) NOT NULL, "
        "`seen` timestamp(6) null, PRIMARY KEY (`id`, `at`)) "
    )
