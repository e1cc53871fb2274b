import pytest

from ibbmaster.primary.dialogue.show_tables import TableShower
from ibbmaster.primary.dialogue.sql import parse
from tests.case_table import data_beside
from tests.primary.dialogue.conftest import refused

DATA = data_beside(__file__)


@pytest.fixture
def ask(new_schema, new_facts, shop):
    shower = TableShower(new_schema(new_facts(tables=shop)), 110806)

    def ask(sql, default=""):
        (show,) = parse(sql)
        if show.what in ("CREATE DATABASE", "CREATE SCHEMA"):
            relation = shower.created_database(show)
        elif show.table is None:
            relation = shower.of_database(show, default)
        else:
            place = show.table.database or default, show.table.name
            is_made = show.what.startswith("CREATE ")
            relation = shower.created(show, *place, default) if is_made else shower.of_table(show, *place)
        return [column.name for column in relation.columns], list(map(list, relation.rows))

    return ask


def test_tables_have_their_kinds_and_are_those_of_the_default_database(ask):
    assert ask("SHOW FULL TABLES FROM shop") == (["Tables_in_shop", "Table_type"], DATA["kinds"])
    assert ask("SHOW TABLES LIKE 's%'", "shop")[0] == ["Tables_in_shop (s%)"]
    assert refused(ask, "SHOW TABLES")[0] == 1046


def test_columns_leave_out_nothing_that_a_server_shows_also_of_information_schema(ask):
    assert ask("SHOW COLUMNS FROM shop.item")[1] == DATA["columns"]
    assert ask("SHOW INDEX FROM information_schema.engines")[1] == []
    assert ask("SHOW COLUMNS FROM information_schema.engines")[1][0] == ["ENGINE", "varchar(64)", "NO", "", None, ""]


def test_a_table_is_shown_as_it_would_be_made(ask):
    columns, [(name, text)] = ask("SHOW CREATE TABLE item", "shop")
    assert (columns, name) == (["Table", "Create Table"], "item")
    assert text.startswith("CREATE TABLE `item` (\n  `id` int(11) NOT NULL,\n")
    assert text.endswith(") ENGINE=InnoDB DEFAULT CHARSET=latin1 COLLATE=latin1_swedish_ci")


def test_views_and_sequences_are_shown_as_what_they_are(ask):
    view = ["View", "Create View", "character_set_client", "collation_connection"]
    assert ask("SHOW CREATE TABLE shop.all_items")[0] == ask("SHOW CREATE VIEW shop.all_items")[0] == view
    assert " VIEW `shop`.`all_items` AS " in ask("SHOW CREATE VIEW shop.all_items")[1][0][1]
    assert " VIEW `all_items` AS " in ask("SHOW CREATE VIEW all_items", "shop")[1][0][1]
    assert ask("SHOW CREATE SEQUENCE shop.numbers")[1][0][1].startswith("CREATE SEQUENCE `numbers` start with 5 ")
    assert ask("SHOW CREATE TABLE shop.numbers")[1][0][1].endswith(" SEQUENCE=1")


def test_the_state_of_tables_has_what_ddl_tells(ask):
    rows = ask("SHOW TABLE STATUS FROM shop")[1]
    assert [row[:3] for row in rows] == DATA["states"]
    assert rows[3][17] == "shop.lost: give --schema"
    assert ask("SHOW OPEN TABLES")[1] == []


@pytest.mark.parametrize(("sql", "code"), DATA["codes"].items())
def test_what_does_not_exist_has_the_code_of_mariadb(ask, sql, code):
    assert refused(ask, sql)[0] == code
