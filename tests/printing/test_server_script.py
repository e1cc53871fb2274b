"""A log as a script for a server; that servers run it is seen in tests/interop/test_printed.py."""

import base64
import re
import struct
from pathlib import Path

import pytest

from ibbmaster.errors import EventError
from ibbmaster.event.format_description import decode_format_description
from ibbmaster.event.rows.encoding import written_table
from ibbmaster.event.table_map import decode_rows_header
from ibbmaster.event.types import EventType
from ibbmaster.printing import server_script
from ibbmaster.printing.server_script import DELIMITER, ServerScript
from tests.machinery.events import make_event
from tests.written_log import Said, inserted, write_log

CLASSIC = Path(__file__).parents[2] / "fixtures" / "classic" / "11.8"
BINLOG = re.compile(r"BINLOG '\n(.*?)'", re.DOTALL)
PARTS = re.compile(r"SET @binlog_fragment_\d='(.*?)'", re.DOTALL)
TABLE = written_table("d.t", {"id": "int", "c": "longblob"}, table_id=1)


def split(data):
    """The events of a BINLOG statement."""
    while data:
        size = struct.unpack_from("<I", data, 9)[0]
        yield data[:size]
        data = data[size:]


def statements(text):
    return [part.strip() for part in text.split(DELIMITER.decode())]


def test_a_script_says_where_and_when_each_transaction_was(printed):
    found = printed(CLASSIC / "domains", ServerScript())
    assert found.startswith("SET @@session.pseudo_slave_mode=1;\n")
    assert found.endswith("DELIMITER ;\nSET @@session.pseudo_slave_mode=0;\n")
    assert "SET @@session.gtid_seq_no=4611686023427388938" in statements(found)
    assert "SET @@session.gtid_domain_id=4294967295, @@session.server_id=77" in found
    assert found.count("\nSTART TRANSACTION\n") == found.count("\nCOMMIT\n") > 100


def test_rows_follow_the_version_of_the_server_that_wrote_them(printed):
    found = printed(CLASSIC / "chained", ServerScript("10.11.19-MariaDB-log"))
    first, second, *_ = (list(split(base64.b64decode(part))) for part in BINLOG.findall(found))
    assert decode_format_description(first[0]).server_version == "10.11.19-MariaDB-log"
    assert [event[4] for event in second] == [EventType.TABLE_MAP, EventType.WRITE_ROWS_V1]


def test_long_statements_are_cut_and_each_part_has_its_tables_and_an_end(printed, monkeypatch):
    monkeypatch.setattr(server_script, "BINLOG_BYTES", 20_000)
    found = printed(CLASSIC / "alter-two-phase", ServerScript())
    parts = [list(split(base64.b64decode(part))) for part in BINLOG.findall(found)[1:]]
    assert len(parts) > 19  # as many statements write rows
    for maps, *_, last in parts:
        assert maps[4] == EventType.TABLE_MAP
        assert decode_rows_header(last).ends_statement


def test_a_row_event_that_is_too_long_for_a_packet_comes_in_two_parts(printed, tmp_path):
    rows = inserted(TABLE, [1, bytes(7 << 20)])
    found = printed(write_log(tmp_path / "log", [rows]), ServerScript())
    _, event = split(b"".join(map(base64.b64decode, PARTS.findall(found))))
    assert event == rows[1]
    assert "BINLOG @binlog_fragment_0, @binlog_fragment_1" in statements(found)


def test_an_xa_transaction_is_started_and_prepared(printed):
    found = statements(printed(CLASSIC / "ddl-trx-xa", ServerScript()))
    begin = found.index("XA START X'74776f',X'',1")
    assert [text for text in found[begin:] if text.startswith("XA ")][:3] == [
        *("XA START X'74776f',X'',1", "XA END X'74776f',X'',1", "XA PREPARE X'74776f',X'',1")
    ]


def test_an_alter_in_two_phases_is_run_where_it_is_committed(printed):
    found = printed(CLASSIC / "alter-two-phase", ServerScript())
    assert found.count("ALTER TABLE big ADD COLUMN c INT DEFAULT 3") == 1
    assert "# ALTER TABLE in two phases: this group changes nothing\n" in found


def test_a_statement_that_failed_does_not_end_the_script(printed, tmp_path):
    log = write_log(tmp_path / "log", Said("INSERT INTO t VALUES (1), (1)", 1062))
    assert (
        "BEGIN NOT ATOMIC DECLARE CONTINUE HANDLER FOR 1062 BEGIN END;\nINSERT INTO t VALUES (1), (1);\nEND"
        in statements(printed(log, ServerScript()))
    )


def test_a_statement_that_has_the_delimiter_gets_another(printed, tmp_path):
    log = write_log(tmp_path / "log", "SELECT '/*!*/;', '/*!0*/;'")
    assert "DELIMITER /*!1*/;\nSELECT '/*!*/;', '/*!0*/;'\n/*!1*/;\nDELIMITER /*!*/;\n" in printed(log, ServerScript())


def test_a_database_is_used_where_the_statement_needs_it(printed, tmp_path):
    log = write_log(tmp_path / "log", "SELECT 1", "SELECT 2")
    assert printed(log, ServerScript()).count("USE `d`") == 1


def test_a_table_that_is_dropped_need_not_be_there(printed, tmp_path):
    log = write_log(tmp_path / "log", "DROP TABLE a", "SELECT 1")
    found = statements(printed(log, ServerScript()))
    assert found[found.index("DROP TABLE a") - 1].endswith("sql_if_exists=1")


@pytest.mark.parametrize(
    ("event_type", "problem"),
    [(EventType.INCIDENT, "group 0-1-1: an incident"), (EventType.BEGIN_LOAD_QUERY, "group 0-1-1: LOAD DATA")],
)
def test_what_no_statement_says_is_refused_with_its_group(printed, tmp_path, event_type, problem):
    log = write_log(tmp_path / "log", [[make_event(event_type, 1, bytes(8))]])
    with pytest.raises(EventError, match=problem):
        printed(log, ServerScript())
