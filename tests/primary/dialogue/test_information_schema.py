import pytest

from ibbmaster.primary.dialogue.information_schema import AboutTables, Catalog, collation_rows
from ibbmaster.primary.dialogue.session_schema import information_table
from ibbmaster.primary.dialogue.settings import Settings
from ibbmaster.primary.dialogue.table_columns import INFORMATION_SCHEMA, SYSTEM_DATABASES, information_columns
from ibbmaster.schema.column_text import type_text


@pytest.fixture
def catalog_of(new_schema):
    def make(facts, settings=None):
        schema = lambda: new_schema(facts)  # noqa: E731
        return Catalog(facts, settings or Settings(facts), facts.processes, lambda: {"uptime": 60}, schema)

    return make


@pytest.fixture
def catalog(catalog_of, new_facts):
    return catalog_of(new_facts("classic-10.11"))


def rows(catalog, table, database="information_schema"):
    return [tuple(row) for row in catalog.find(database, table).rows]


@pytest.mark.parametrize("table", INFORMATION_SCHEMA)
def test_each_row_has_as_many_values_as_its_table_has_columns(catalog_of, new_facts, shop, table):
    relation = catalog_of(new_facts("classic-10.11", tables=shop)).find("INFORMATION_SCHEMA", table.lower())
    for row in relation.rows:
        assert len(row) == len(relation.columns)


def test_other_tables_do_not_exist(catalog):
    assert catalog.find("shop", "ENGINES") is None
    assert catalog.find("information_schema", "nothing") is None
    assert catalog.find("mysql", "user") is None


def test_a_server_that_was_never_a_replica_has_an_empty_position(catalog):
    relation = catalog.find("mysql", "gtid_slave_pos")
    assert [column.name for column in relation.columns] == ["domain_id", "sub_id", "server_id", "seq_no"]
    assert list(relation.rows) == []


def test_databases_are_those_of_every_server(catalog):
    assert [row[1] for row in rows(catalog, "SCHEMATA")] == list(SYSTEM_DATABASES)


def test_variables_of_the_session_are_its_own(catalog_of, new_facts):
    facts = new_facts("classic-10.11")
    settings = Settings(facts)
    settings.values["wait_timeout"] = 5
    catalog = catalog_of(facts, settings)
    of_session, of_server = dict(rows(catalog, "SESSION_VARIABLES")), dict(rows(catalog, "GLOBAL_VARIABLES"))

    assert (of_session["WAIT_TIMEOUT"], of_server["WAIT_TIMEOUT"]) == ("5", "28800")
    assert of_session.keys() - of_server.keys() >= {"TIMESTAMP"}
    assert of_session["AUTOCOMMIT"] == "ON"


def test_status_and_connections_are_those_of_the_server(catalog):
    assert rows(catalog, "GLOBAL_STATUS") == rows(catalog, "SESSION_STATUS") == [("UPTIME", "60")]
    assert [row[:3] for row in rows(catalog, "PROCESSLIST")] == [(7, "repl", "::1"), (8, "repl", "::1")]


@pytest.mark.parametrize(
    ("profile", "default"), [("classic-10.11", "utf8mb4_general_ci"), ("classic-11.8", "utf8mb4_uca1400_ai_ci")]
)
def test_each_character_set_has_one_default_collation(catalog_of, new_facts, profile, default):
    defaults = {row[0]: row[1] for row in rows(catalog_of(new_facts(profile)), "CHARACTER_SETS")}
    listed = [row[1] for row in collation_rows(new_facts(profile)) if row[3] == "Yes"]

    assert defaults["utf8mb4"] == default
    assert len(set(listed)) == len(listed) > 30


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
