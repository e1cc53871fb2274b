"""A log as a script for a server; that servers run it is seen in tests/interop/test_printed.py."""

import base64
import re
import struct
from decimal import Decimal
from pathlib import Path

import pytest

from ibbmaster.commands.printing import server_script
from ibbmaster.commands.printing.server_script import (
    DELIMITER,
    OF_FLAGS,
    LoadFiles,
    ServerScript,
    SessionSettings,
    user_variable,
)
from ibbmaster.errors import EventError, StoreError
from ibbmaster.replication.event.format_description import decode_format_description
from ibbmaster.replication.event.query import Query
from ibbmaster.replication.event.rows.encoding import written_table
from ibbmaster.replication.event.statement.given import LoggedVariable
from ibbmaster.replication.event.table_map import decode_rows_header
from ibbmaster.replication.event.types import EventType
from tests.machinery.events import make_event, split_events
from tests.written_log import inserted, write_log


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


CLASSIC = Path(__file__).parents[3] / "fixtures" / "classic" / "11.8"
BINLOG = re.compile(r"BINLOG '\n(.*?)'", re.DOTALL)
PARTS = re.compile(r"SET @binlog_fragment_\d='(.*?)'", re.DOTALL)
TABLE = written_table("d.t", {"id": "int", "c": "longblob"}, table_id=1)


def statements(text):
    return [part.strip() for part in text.split(DELIMITER.decode())]


def test_rows_follow_the_version_of_the_server_that_wrote_them(printed):
    found = printed(CLASSIC / "chained", ServerScript("10.11.19-MariaDB-log"))
    first, second, *_ = (list(split_events(base64.b64decode(part))) for part in BINLOG.findall(found))
    assert decode_format_description(first[0]).server_version == "10.11.19-MariaDB-log"
    assert [event[4] for event in second] == [EventType.TABLE_MAP, EventType.WRITE_ROWS_V1]


def test_long_statements_are_cut_and_each_part_has_its_tables_and_an_end(printed, monkeypatch):
    monkeypatch.setattr(server_script, "BINLOG_BYTES", 20_000)
    found = printed(CLASSIC / "alter-two-phase", ServerScript())
    parts = [list(split_events(base64.b64decode(part))) for part in BINLOG.findall(found)[1:]]
    assert len(parts) > 19  # as many statements write rows
    for maps, *_, last in parts:
        assert maps[4] == EventType.TABLE_MAP
        assert decode_rows_header(last).ends_statement


def test_a_row_event_that_is_too_long_for_a_packet_comes_in_two_parts(printed, tmp_path):
    rows = inserted(TABLE, [1, bytes(7 << 20)])
    found = printed(write_log(tmp_path / "log", [rows]), ServerScript())
    _, event = split_events(b"".join(map(base64.b64decode, PARTS.findall(found))))
    assert event == rows[1]
    assert "BINLOG @binlog_fragment_0, @binlog_fragment_1" in statements(found)


def test_a_database_is_used_where_the_statement_needs_it(printed, tmp_path):
    assert printed(write_log(tmp_path / "log", "SELECT 1", "SELECT 2"), ServerScript()).count("USE `d`") == 1


def test_a_table_that_is_dropped_need_not_be_there(printed, tmp_path):
    found = statements(printed(write_log(tmp_path / "log", "DROP TABLE a", "SELECT 1"), ServerScript()))
    assert found[found.index("DROP TABLE a") - 1].endswith("sql_if_exists=1")


@pytest.mark.parametrize(
    ("event_type", "problem"),
    [(EventType.INCIDENT, "group 0-1-1: an incident"), (EventType.BEGIN_LOAD_QUERY, "group 0-1-1: LOAD DATA")],
)
def test_what_no_statement_says_is_refused_with_its_group(printed, tmp_path, event_type, problem):
    log = write_log(tmp_path / "log", [[make_event(event_type, 1, bytes(8))]])
    with pytest.raises(EventError, match=problem):
        printed(log, ServerScript())


BEGIN, APPEND, DELETE = EventType.BEGIN_LOAD_QUERY, EventType.APPEND_BLOCK, EventType.DELETE_FILE


def part(event_type, data, number=1):
    return make_event(event_type, 1, struct.pack("<I", number) + data)


def test_blocks_follow_each_other_and_a_file_that_was_dropped_goes(tmp_path):
    loads = LoadFiles(tmp_path)
    loads.begin("0-1-2")
    loads.take(part(BEGIN, b"one"))
    loads.take(part(APPEND, b"two"))
    assert (tmp_path / "load-0-1-2-1").read_bytes() == b"onetwo"
    loads.take(part(DELETE, b""))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("event", "problem"),
    [
        (part(APPEND, b"", 5), "data of LOAD DATA in file 5, which did not begin"),
        (make_event(BEGIN, 1, b"\1"), "data of LOAD DATA in 1 bytes"),
    ],
)
def test_what_does_not_fit_is_an_error(tmp_path, event, problem):
    with pytest.raises(EventError, match=problem):
        LoadFiles(tmp_path).take(event)


def test_without_a_directory_it_is_refused():
    with pytest.raises(EventError, match=r"LOAD DATA in statement format.*name a directory"):
        LoadFiles(None).take(part(BEGIN, b""))


def test_a_directory_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="file/load--1: cannot be written"):
        LoadFiles(tmp_path / "file").take(part(BEGIN, b""))
