import struct

import pytest

from ibbmaster.replication.event.header import decode_event_header
from ibbmaster.replication.event.query import STATUS_COLLATIONS, STATUS_XID, Query, decode_query, status_variables
from ibbmaster.replication.event.statement.logged import STATUS_CHARSET, STATUS_MICROSECONDS, decode_statement
from ibbmaster.replication.event.types import EventFlag
from ibbmaster.testkit import FixturePrimary
from tests.case_table import data_beside

BEFORE = ("CREATE DATABASE shop", "CREATE TABLE shop.t (id int, made timestamp(3) default current_timestamp(3))")
_DATA = data_beside(__file__)
NEEDS = _DATA["needs"]  # a statement, and the status variables of it beside 0, 1, 6 and 4, in their order


def last_query(primary: FixturePrimary) -> tuple[Query, int]:
    event = last_event(primary)
    return decode_query(event), decode_event_header(event).flags


def last_event(primary: FixturePrimary) -> bytes:
    (*_, group) = primary.log.groups()
    (*_, event) = group.events()
    return event.data


def new_primary(profile: str = "11.8") -> FixturePrimary:
    primary = FixturePrimary(profile=profile)
    for sql in BEFORE:
        primary.ddl(sql)
    return primary


@pytest.mark.parametrize(("sql", "codes"), NEEDS.items())
def test_a_statement_says_what_it_needs_of_its_session(sql, codes):
    with new_primary() as primary:
        primary.ddl(sql)
        found = [code for code, _ in status_variables(last_query(primary)[0].status)]

    charset = found.index(STATUS_CHARSET)
    assert found[:3] == [0, 1, 6]
    assert found[3:charset] + found[charset + 1 :] == codes


@pytest.mark.parametrize(("sql", "flags"), _DATA["flags"].items())
def test_the_header_says_what_a_replica_takes_care_of(sql, flags):
    with new_primary() as primary:
        primary.ddl(sql)
        assert last_query(primary)[1] == sum(EventFlag[name] for name in flags)


@pytest.mark.parametrize(("profile", "number"), [("10.11", 45), ("11.4", 45), ("11.8", 2304), ("12.3", 2304)])
def test_a_session_has_the_default_collations_of_its_server(profile, number):
    with new_primary(profile) as primary:
        primary.ddl("CREATE TABLE shop.n (v varchar(9) character set utf8mb4)")
        variables = dict(status_variables(last_query(primary)[0].status))
        assert variables[STATUS_CHARSET] == 3 * number.to_bytes(2, "little")
        assert (STATUS_COLLATIONS in variables) == (number == 2304)
        assert dict(decode_statement(last_event(primary)).collations).get(45, 45) == number
        primary.table("shop.n").insert(v="x")
        (*_, group) = primary.log.groups()
        (table_map,) = [event.data for event in group.events() if event.type == "TABLE_MAP"]
        assert (b"\xfc" + struct.pack("<H", 2304) in table_map) == (number == 2304)


def test_an_event_has_the_number_of_its_ddl_and_the_microseconds_of_the_clock():
    with new_primary() as primary:
        primary.clock.advance(0.125)
        primary.ddl("ALTER TABLE shop.t ADD a int", seq_no=77)
        variables = dict(status_variables(last_query(primary)[0].status))

    assert int.from_bytes(variables[STATUS_XID], "little") == 77
    assert int.from_bytes(variables[STATUS_MICROSECONDS], "little") == 125_000


def test_an_event_names_the_database_that_it_makes_and_a_primary_writes_as_what_it_became():
    with new_primary() as primary:
        primary.ddl("CREATE DATABASE IF NOT EXISTS `an other`", database="shop")
        assert last_query(primary)[0].database == b"an other"
    with new_primary("10.11") as primary:
        primary.stop()
        primary.become(profile="11.8")
        primary.start()
        primary.ddl("CREATE TABLE shop.n (v varchar(9)) CHARSET latin1")
        assert STATUS_COLLATIONS in dict(status_variables(last_query(primary)[0].status))


def test_a_statement_that_changes_rows_is_not_taken_for_one_that_defines():
    with new_primary() as primary, primary.transaction(is_transactional=False) as transaction:
        transaction.statement("UPDATE shop.t SET temporary = 1, `table` = 2, event = now()")
        transaction.commit()
        (*_, group) = primary.log.groups()
        event, commit = [event.data for event in group.events()][1:]

    assert [code for code, _ in status_variables(decode_query(event).status)] == [0, 1, 6, 4, 5, 128]
    assert decode_event_header(event).flags == 0
    assert decode_event_header(commit).flags == EventFlag.SUPPRESS_USE
