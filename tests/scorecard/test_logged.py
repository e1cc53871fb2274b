from decimal import Decimal

import pytest

from ibbmaster.testkit import FixturePrimary
from ibbmaster_scorecard.logged import logged_behind, logged_groups, of_both
from ibbmaster_scorecard.same_value import BitValue, EncodedText, PaddedBytes
from .stories import logged


def test_rows_and_statements_of_a_group_are_its_changes():
    with FixturePrimary(server_id=3) as primary:
        orders = primary.table("shop.orders", id="int primary key", total="decimal(10,2)", flags="bit(4)")
        before = str(primary.log.position)
        with primary.transaction() as transaction:
            transaction.savepoint("a")
            orders.insert(id=1, total="9.9", flags=5)
            transaction.statement("UPDATE stock SET n = n - 1", database="shop")
        (group,) = logged_groups(primary, before)
    insert, statement = group.changes
    assert (group.gtid, group.is_prepared, group.is_required) == ("0-3-3", False, True)
    assert (insert.table, insert.kind, insert.before) == ("shop.orders", "insert", None)
    assert insert.after == {"id": 1, "total": Decimal("9.90"), "flags": 5}
    assert isinstance(insert.after["flags"], BitValue)
    assert (insert.columns, insert.has_names) == (("id", "total", "flags"), True)
    assert statement.sql == "UPDATE stock SET n = n - 1"


def test_values_that_libraries_give_in_other_forms_are_marked():
    with FixturePrimary() as primary:
        orders = primary.table(
            "shop.orders", a="binary(3)", b="varbinary(3)", c="varchar(9) character set latin1", d="bit(2)"
        )
        orders.insert(a=b"x", b=b"x", c="x", d=1)
        (change,) = logged_groups(primary, "")[-1].changes
    assert change.after is not None
    assert [type(value) for value in change.after.values()] == [PaddedBytes, bytes, EncodedText, BitValue]
    assert change.after["c"].charset == "latin1"


def test_names_are_known_where_the_log_has_them_and_ddl_changes_no_row():
    for metadata in ("NO_LOG", "MINIMAL"):
        with FixturePrimary(metadata=metadata) as primary:
            primary.table("shop.orders", id="int primary key").insert(id=1)
            *ddl, group = logged_groups(primary, "")
            assert [one.changes for one in ddl] == [(), ()]
            assert [(change.has_names, change.columns) for change in group.changes] == [(False, ("id",))]


def test_prepared_groups_are_known():
    with FixturePrimary(profile="11.8") as primary:
        orders = primary.table("shop.orders", id="int primary key")
        with primary.transaction() as transaction:
            orders.insert(id=1)
            transaction.prepare("x")
        primary.xa_commit("x")
        *_, prepared, ended = logged_groups(primary, "")
    assert (prepared.is_prepared, len(prepared.changes)) == (True, 1)
    assert (ended.is_prepared, ended.changes) == (False, ())


@pytest.mark.parametrize("start", ["0-3-9", "0-77-1", "5-3-1"])
def test_behind_a_place_that_is_not_there_is_nothing(start):
    with FixturePrimary(server_id=3) as primary:
        primary.table("shop.orders", id="int primary key")
        assert logged_behind(primary, start) == []
        assert len(logged_behind(primary, "0-3-1")) == 1
        assert len(logged_behind(primary, "")) == 2


def test_of_two_primaries_the_second_decides_what_is_required():
    first, second, third, marker = logged(1, 1, 1, 1)
    added = logged(0, 0, 0, 0, 1)[-1]
    found = of_both([second, third, marker], [first, second, added, marker], "0-3-1")
    assert [(group.gtid, group.is_required) for group in found] == [
        ("0-3-2", True),
        ("0-3-3", False),
        ("0-3-5", True),
        ("0-3-4", True),
    ]
