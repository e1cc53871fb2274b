import dataclasses

import pytest

import ibbmaster
from ibbmaster.errors import EventError, StageError
from ibbmaster.logs.stages.renaming import NameChange, NameMap
from ibbmaster.replication.event.query import Query, decode_query, encode_query
from ibbmaster.replication.event.statement.logged import LoadData, LoggedStatement, decode_load_data, encode_load_data
from ibbmaster.replication.event.table_map import decode_table_map
from ibbmaster.schema.clause import NotUnderstoodError
from ibbmaster.schema.name_case import NameCase
from ibbmaster.sqltext.table_name import TableName
from tests.built_logs import FIXTURES
from tests.case_table import rows_of
from tests.logs.stages.test_engine import check_group, gtids_of
from tests.logs.stages.test_filtering import XID, group_of, query, rows, table_map, through


def names(*pairs, case=NameCase.EXACT):
    return NameMap([tuple(pair.split("=")) for pair in pairs], lambda: case)


SHOP = names("shop=stage")
ORDERS = names("shop.orders=stage.sales")
WITHIN = names("shop.orders=shop.sales")


@pytest.mark.parametrize(("changes", "text", "expected"), rows_of(__file__, "renamed"))
def test_names_in_a_statement_are_changed_or_it_is_refused(changes, text, expected):
    group, change = group_of(query(text), XID), NameChange(names(changes))
    if not expected:
        with pytest.raises(StageError, match="group 3-1-7 cannot be renamed: "):
            through(change, group)
        return
    found = decode_query(through(change, group)[1])
    assert found.text.decode() == expected
    is_moved = changes == "shop=stage" and text not in ("COMMIT", "ROLLBACK")  # the end of a group names nothing
    assert found.database == (b"stage" if is_moved else b"shop")


def test_a_table_that_stays_in_its_database_is_named_without_it():
    statement = LoggedStatement("INSERT INTO orders VALUES (1)", "shop", 0, 0, True)
    assert WITHIN.text(statement) == "INSERT INTO `sales` VALUES (1)"
    assert WITHIN.text(statement._replace(database="other")) == statement.text


@pytest.mark.parametrize(
    ("known", "old", "new"),
    [(SHOP, "shop.items", "stage.items"), (ORDERS, "shop.orders", "stage.sales"), (ORDERS, "shop.items", "shop.items")],
)
def test_a_table_map_has_the_new_names_and_its_own_columns(known, old, new):
    _, found, *rest = through(NameChange(known), group_of(table_map(1, old), rows(1, ends=True), XID))
    after, before = decode_table_map(found), decode_table_map(table_map(1, old))
    assert f"{after.database.decode()}.{after.table.decode()}" == new
    assert (after.table_id, after.column_types) == (before.table_id, before.column_types)
    assert found[-4:] == table_map(1, old)[-4:]
    assert rest == [rows(1, ends=True), XID]


def test_a_name_that_is_taken_is_refused_but_two_may_change():
    with pytest.raises(StageError, match="database stage is in the log, and another one is to be called so"):
        through(NameChange(SHOP), group_of(table_map(1, "stage.orders"), XID))
    with pytest.raises(NotUnderstoodError, match=r"table stage\.sales is in the log"):
        ORDERS.table(TableName("stage", "sales"))
    swap = names("a=b", "b=a")
    assert swap.table(TableName("a", "t")) == TableName("b", "t")
    assert swap.table(TableName("b", "t")) == TableName("a", "t")
    statement = LoggedStatement("INSERT INTO a.t SELECT * FROM b.t", "", 0, 0, True)
    assert swap.text(statement) == "INSERT INTO `b`.t SELECT * FROM `a`.t"


def test_names_compare_as_the_server_of_the_log_compares_them():
    statement = LoggedStatement("INSERT INTO SHOP.Orders VALUES (1)", "", 0, 0, True)
    assert SHOP.text(statement) == statement.text
    assert names("shop=stage", case=NameCase.LOWER).text(statement) == "INSERT INTO `stage`.Orders VALUES (1)"


LOADED = {
    "LOAD DATA INFILE 'shop.orders' INTO TABLE `orders` (a)": "TABLE `stage`.`sales` (a)",
    "LOAD DATA LOCAL INFILE 'f' REPLACE INTO TABLE shop.orders": "TABLE `stage`.`sales`",
    "LOAD DATA INFILE 'f' INTO TABLE `shop`.`orders` SET a = (SELECT 1 FROM orders)": (
        "TABLE `stage`.`sales` SET a = (SELECT 1 FROM `stage`.`sales`)"
    ),
}


@pytest.mark.parametrize("text", LOADED)
def test_a_file_is_loaded_into_a_table_with_its_new_name(text):
    start, end = text.index("INFILE"), text.index("INTO") + len("INTO")
    query_ = Query(thread_id=1, seconds=0, error_code=0, status=b"", database=b"shop", text=text.encode())
    event = encode_load_data(LoadData(query_, 7, start, end, 2), server_id=3, timestamp=9)

    _, found, _ = through(NameChange(ORDERS), group_of(event, XID))

    load = decode_load_data(found)
    assert load.query.text.decode() == f"{text[:end]} {LOADED[text]}"
    assert dataclasses.replace(load, query=query_) == LoadData(query_, 7, start, end, 2)
    assert found[:9] == event[:9]


def test_a_name_before_that_of_the_file_cannot_change():
    text = "LOAD DATA INFILE 'f' INTO TABLE orders"
    query_ = Query(thread_id=1, seconds=0, error_code=0, status=b"", database=b"shop", text=text.encode())
    event = encode_load_data(LoadData(query_, 7, 0, len(text), 0), server_id=3)
    with pytest.raises(StageError, match="group 3-1-7 cannot be renamed: a LOAD DATA with a name that changes before"):
        through(NameChange(ORDERS), group_of(event, XID))


def test_a_text_in_another_character_set_keeps_it_and_a_name_that_is_too_long_is_an_error():
    status = b"\x04" + bytes([8, 0, 8, 0, 8, 0])  # latin1
    text = "INSERT INTO shop.t VALUES ('é')".encode("latin1")
    value = Query(thread_id=1, seconds=0, error_code=0, status=status, database=b"", text=text)
    found = decode_query(through(NameChange(SHOP), group_of(encode_query(value, server_id=1), XID))[1])
    assert found.text == text.replace(b"shop", b"`stage`")
    assert found.status == status
    with pytest.raises(EventError, match="a name of 300 bytes"):
        through(NameChange(names(f"shop={'x' * 300}")), group_of(table_map(1, "shop.orders"), XID))


@pytest.mark.parametrize("name", ["ibb/domains", "ibb/xa-and-ddl", "classic/10.11/domains", "classic/11.8/ddl-trx-xa"])
def test_a_renamed_capture_has_the_rows_of_before_under_the_new_names(name):
    with ibbmaster.open(FIXTURES / name) as log:
        databases = sorted({table.database for group in log for table, _ in group.rows()})
        new = {database: f"{database}_new" for database in databases}
        renamed = log.through(rename=[f"{old}={new[old]}" for old in databases])
        before = [(table.name, change) for group in log for table, change in group.rows()]
        after = []
        for group in renamed.groups():
            check_group(group)
            after += [(table.name, change) for table, change in group.rows()]
        assert [change for _, change in after] == [change for _, change in before]
        assert [table for table, _ in after] == [
            f"{new[table.partition('.')[0]]}.{table.partition('.')[2]}" for table, _ in before
        ]
        assert tuple(group.gtid for group in renamed.groups()) == gtids_of(name)
