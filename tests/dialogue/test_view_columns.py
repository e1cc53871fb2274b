"""The columns of views; those that are told are as MariaDB 10.11 and 11.8 show them."""

import pytest

from ibbmaster.dialogue.session_schema import SessionSchema
from ibbmaster.schema.describing import shown_column_rows

TABLE = (
    "CREATE TABLE t (id int auto_increment primary key, a varchar(10) default 'x', g int as (id+1) virtual, "
    "d timestamp default now() on update now(), e enum('a','b') not null, u int invisible, c varchar(5) comment 'hey')"
)
NOW = "current_timestamp()"
SHOWN = {
    "CREATE VIEW v AS SELECT id, a AS aa, shop.t.g, d, e, u, c FROM shop.t WHERE id > 1": [
        ("id", "int(11)", "NO", "", "0", ""),
        ("aa", "varchar(10)", "YES", "", "x", ""),
        ("g", "int(11)", "YES", "", None, ""),
        ("d", "timestamp", "YES", "", NOW, ""),
        ("e", "enum('a','b')", "NO", "", None, ""),
        ("u", "int(11)", "YES", "", None, ""),
        ("c", "varchar(5)", "YES", "", None, ""),
    ],
    "CREATE VIEW v (x, `y`) AS SELECT id, e FROM t AS s ORDER BY 1": [
        ("x", "int(11)", "NO", "", "0", ""),
        ("y", "enum('a','b')", "NO", "", None, ""),
    ],
    "CREATE VIEW v AS SELECT * FROM inner_view": [("id", "int(11)", "NO", "", "0", "")],
}
NOT_TOLD = [
    "CREATE VIEW v AS SELECT COUNT(*) n FROM t",
    "CREATE VIEW v AS SELECT id + 1 FROM t",
    "CREATE VIEW v AS SELECT t.id FROM t JOIN t s",
    "CREATE VIEW v AS SELECT id FROM nothing",
    "CREATE VIEW v AS SELECT nothing FROM t",
    "CREATE VIEW v AS SELECT id FROM (SELECT id FROM t) x",
    "CREATE VIEW v AS SELECT id FROM t UNION SELECT 1",
    "CREATE VIEW v AS SELECT id FROM v",
    "CREATE VIEW v (x, y) AS SELECT id FROM t",
    "CREATE VIEW v AS SELECT other.id FROM t",
    "CREATE VIEW v AS SELECT 1",
]


@pytest.fixture
def columns(new_schema, new_facts, new_catalog):
    own = new_schema(new_facts())._own

    def columns(view):
        made = new_catalog("CREATE DATABASE shop", TABLE, "CREATE VIEW inner_view AS SELECT id FROM t", view)
        table = SessionSchema(made, frozenset(["SELECT"]), own).table("shop", "v")
        return list(shown_column_rows(table, 110806, is_full=False))

    return columns


@pytest.mark.parametrize(("view", "shown"), SHOWN.items(), ids=list(SHOWN))
def test_columns_of_a_table_are_columns_of_a_view(columns, view, shown):
    assert columns(view) == shown


@pytest.mark.parametrize("view", NOT_TOLD)
def test_what_is_no_column_of_one_table_is_not_told(columns, view):
    assert columns(view) == []
