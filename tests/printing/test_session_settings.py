"""What a session must have set is said once, until something else is wanted."""

import struct
from decimal import Decimal

import pytest

from ibbmaster.errors import EventError
from ibbmaster.event.query import Query
from ibbmaster.event.statement.given import LoggedVariable
from ibbmaster.printing.session_settings import OF_FLAGS, SessionSettings, user_variable


def query(status=b""):
    return Query(thread_id=7, seconds=0, error_code=0, status=status, database=b"d", text=b"x")


def test_what_is_set_is_not_set_again():
    settings = SessionSettings()
    assert settings.changed(a=1, b=2) == "SET @@session.a=1, @@session.b=2"
    assert settings.changed(a=1, b=3) == "SET @@session.b=3"
    assert settings.changed(a=1, b=3) is None


@pytest.mark.parametrize(("name", "bit", "on"), OF_FLAGS)
def test_each_flag_is_a_variable(name, bit, on):
    for flags, value in ((0, 1 - on), (1 << bit, on)):
        _, text = SessionSettings().for_query(query(struct.pack("<BI", 0, flags)), 5)
        assert f"@@session.{name}={value}" in text


def test_a_statement_has_its_time_and_its_session():
    settings = SessionSettings()
    status = (
        struct.pack("<BQ", 1, 1 << 22)
        + struct.pack("<BHH", 3, 5, 2)
        + struct.pack("<BHHH", 4, 28, 8, 45)
        + b"\x05\x06+05:30"
        + struct.pack("<BH", 7, 3)
        + struct.pack("<BH", 8, 8)
        + b"\x80"
        + (123).to_bytes(3, "little")
        + struct.pack("<BBHH", 131, 1, 45, 46)
    )
    first, second, third = settings.for_query(query(status), 5)
    assert first == "SET TIMESTAMP=5.000123"
    assert second.split(", ")[1:] == [
        *("@@session.sql_mode=4194304", "@@session.auto_increment_increment=5", "@@session.auto_increment_offset=2"),
        *("@@session.character_set_client=28", "@@session.collation_connection=8", "@@session.collation_server=45"),
        *("@@session.lc_time_names=3", "@@session.collation_database=8", "@@session.time_zone='+05:30'"),
    ]
    assert third == "/*M!110200 SET @@session.character_set_collations='utf8mb4=utf8mb4_bin' */"
    assert settings.client_charset == "gbk"
    assert list(settings.for_query(query(status), 6)) == ["SET TIMESTAMP=6.000123"]


def test_what_a_statement_does_not_say_is_as_a_server_begins():
    settings = SessionSettings()
    list(settings.for_query(query(struct.pack("<BHH", 3, 5, 2) + struct.pack("<BH", 7, 3)), 5))
    _, text = settings.for_query(query(), 5)
    assert "auto_increment_increment=1, @@session.auto_increment_offset=1, @@session.lc_time_names=0" in text


def test_a_damaged_status_is_an_error():
    with pytest.raises(EventError, match="status variable 1 runs 7 bytes over the end"):
        list(SessionSettings().for_query(query(b"\x01\0"), 5))


@pytest.mark.parametrize(
    ("value", "collation", "text"),
    [
        (None, 0, "NULL"),
        (b"\xe4'", 8, "_latin1 X'e427' COLLATE `latin1_swedish_ci`"),
        (b"\0", 63, "_binary X'00' COLLATE `binary`"),
        (b"a", 65535, "_binary X'61'"),
        (-5, 8, "-5"),
        (2**64 - 1, 8, "18446744073709551615"),
        (0.1, 8, "1.00000000000000006e-01"),
        (Decimal("1.250"), 8, "1.250"),
    ],
)
def test_a_user_variable_keeps_type_and_character_set(value, collation, text):
    assert user_variable(LoggedVariable(name="a`b", value=value, collation=collation)) == f"SET @`a``b`:={text}"
