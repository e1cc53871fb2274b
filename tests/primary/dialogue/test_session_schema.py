import pytest

from ibbmaster.primary.dialogue import privileges
from ibbmaster.primary.dialogue.session_schema import SessionSchema
from ibbmaster.primary.dialogue.table_columns import SYSTEM_DATABASES
from ibbmaster.replication.wire.refusal import RefusedError
from ibbmaster.schema.describing import shown_column_rows
from tests.case_table import data_beside
from tests.primary.dialogue.conftest import refused

DATA = data_beside(__file__)
NOBODY = frozenset[str]()


@pytest.fixture
def schema(new_schema, new_facts, shop):
    return new_schema(new_facts(tables=shop))


def test_databases_of_the_log_stand_among_those_of_every_server(schema):
    assert list(schema.databases) == ["information_schema", "mysql", "performance_schema", "shop"]
    assert (schema.database("shop").charset, schema.database("shop").comment) == ("latin1", "c")
    assert schema.database("MYSQL").name == "mysql"


@pytest.mark.parametrize("name", ["SHOP", "nothing", ""])
def test_names_of_databases_are_exact(schema, name):
    assert refused(schema.database, name)[0] == 1049


def test_tables_are_sorted_and_the_unknown_one_is_among_them(schema):
    names = [table.name for table in schema.all_tables("shop")]
    assert names == ["all_items", "counted", "item", "lost", "numbers", "sold"]
    assert [table.name for table in schema.tables("shop")] == ["all_items", "counted", "item", "numbers", "sold"]
    assert [table.full_name for table in schema.tables("mysql")] == ["mysql.gtid_slave_pos"]


@pytest.mark.parametrize(
    ("database", "name", "code"), [("shop", "ITEM", 1146), ("nothing", "item", 1146), ("shop", "lost", 1105)]
)
def test_a_table_that_is_not_there_or_not_known_is_refused(schema, database, name, code):
    assert refused(schema.table, database, name)[0] == code


def test_who_may_read_nothing_sees_no_table_but_perhaps_databases(new_schema, new_facts, shop):
    schema = new_schema(new_facts(tables=shop), NOBODY)
    assert list(schema.databases) == [SYSTEM_DATABASES[0]]
    assert list(schema.all_tables()) == []
    with pytest.raises(RefusedError):
        schema.database("shop")
    schema = new_schema(new_facts(tables=shop), frozenset([privileges.SHOW_DATABASES]))
    assert "shop" in schema.databases
    assert list(schema.all_tables()) == []


def test_it_is_that_of_one_catalog_and_some_privileges(schema, shop):
    catalog = shop.catalog(shop.newest())
    assert schema.is_of(catalog, privileges.READING)
    assert not schema.is_of(catalog, NOBODY)
    assert not schema.is_of(shop.catalogs[0][1], privileges.READING)


def test_a_database_that_no_statement_made_has_a_server_s_own_character_set(new_schema, new_facts, shop):
    newest = shop.catalogs[-1][1]
    shop.catalogs[-1] = ("", type(newest)(tables=newest.tables))
    assert new_schema(new_facts(tables=shop)).database("shop").charset == "utf8mb4"


TABLE = (
    "CREATE TABLE t (id int auto_increment primary key, a varchar(10) default 'x', g int as (id+1) virtual, "
    "d timestamp default now() on update now(), e enum('a','b') not null, u int invisible, c varchar(5) comment 'hey')"
)


@pytest.fixture
def columns(new_schema, new_facts, new_catalog):
    own = new_schema(new_facts())._own

    def columns(view):
        made = new_catalog("CREATE DATABASE shop", TABLE, "CREATE VIEW inner_view AS SELECT id FROM t", view)
        table = SessionSchema(made, frozenset(["SELECT"]), own).table("shop", "v")
        return list(shown_column_rows(table, 110806, is_full=False))

    return columns


@pytest.mark.parametrize(("view", "shown"), DATA["columns of a view"].items())
def test_columns_of_a_table_are_columns_of_a_view(columns, view, shown):
    assert list(map(list, columns(view))) == shown


@pytest.mark.parametrize("view", DATA["not told"])
def test_what_is_no_column_of_one_table_is_not_told(columns, view):
    assert columns(view) == []
