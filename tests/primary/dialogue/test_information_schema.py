import pytest

from ibbmaster.primary.dialogue.information_schema import Catalog, collation_rows
from ibbmaster.primary.dialogue.settings import Settings
from ibbmaster.primary.dialogue.table_columns import INFORMATION_SCHEMA, SYSTEM_DATABASES


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
