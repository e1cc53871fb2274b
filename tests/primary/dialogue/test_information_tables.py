import pytest

from ibbmaster.primary.dialogue.information_tables import AboutTables
from ibbmaster.primary.dialogue.session_schema import information_table
from ibbmaster.primary.dialogue.table_columns import INFORMATION_SCHEMA, information_columns
from ibbmaster.schema.column_text import type_text


@pytest.fixture
def about(new_schema, new_facts, shop):
    return AboutTables(new_schema(new_facts(tables=shop)), 110806)


def of_shop(about, table):
    names = [column.name for column in information_columns(table)]
    rows = [dict(zip(names, row, strict=True)) for row in about.rows(table)]
    return [row for row in rows if "shop" in row.values()]


def test_tables_are_told_by_kind_and_the_unknown_one_with_its_reason(about):
    rows = {row["TABLE_NAME"]: (row["TABLE_TYPE"], row["ENGINE"]) for row in of_shop(about, "TABLES")}
    assert rows == {
        "all_items": ("VIEW", None),
        "counted": ("VIEW", None),
        "item": ("BASE TABLE", "InnoDB"),
        "lost": ("BASE TABLE", None),
        "numbers": ("SEQUENCE", "InnoDB"),
        "sold": ("BASE TABLE", "InnoDB"),
    }
    (lost,) = (row for row in of_shop(about, "TABLES") if row["TABLE_NAME"] == "lost")
    assert lost["TABLE_COMMENT"] == "shop.lost: give --schema"


def test_its_own_tables_are_told_as_well(about):
    rows = [row for row in about.rows("TABLES") if row[1] == "information_schema"]
    assert len(rows) == len(INFORMATION_SCHEMA)
    assert {row[3] for row in rows} == {"SYSTEM VIEW"}
    assert type_text(information_table("ENGINES").columns[0].type) == "varchar(64)"
    assert type_text(information_table("COLUMNS").columns[4].type) == "bigint(21) unsigned"


def test_a_foreign_key_finds_its_parent_among_the_tables(about):
    (row,) = of_shop(about, "REFERENTIAL_CONSTRAINTS")
    assert (row["UNIQUE_CONSTRAINT_NAME"], row["REFERENCED_TABLE_NAME"]) == ("PRIMARY", "item")
    assert list(about.rows("PROCESSLIST")) == []
