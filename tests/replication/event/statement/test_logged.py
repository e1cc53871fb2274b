import dataclasses

import pytest
from lanes.replay import CLASSIC, raw_events

from ibbmaster.errors import EventError
from ibbmaster.replication.event.header import decode_event_header
from ibbmaster.replication.event.query import FIXED
from ibbmaster.replication.event.statement.logged import FILE, decode_load_data, decode_statement, encode_load_data
from ibbmaster.replication.event.types import EventType
from ibbmaster.rows.effects import effects_of
from ibbmaster.sqltext.table_name import TableName
from tests.replication.event.conftest import query

LOGGED = [
    event
    for version in ("10.11", "11.8")
    for event in raw_events(CLASSIC / version / "statement")
    if event[4] == EventType.EXECUTE_LOAD_QUERY
]


def test_a_statement_comes_with_its_database_its_session_and_its_mode():
    statement = decode_statement(query(b'TRUNCATE "t"', b"d", b"\x01\x04" + bytes(7)))
    assert (statement.database, statement.thread_id, statement.sql_mode) == ("d", 1, 4)
    assert [one.table for one in effects_of(statement)] == [TableName("d", "t")]


@pytest.mark.parametrize(
    ("collation", "text"), [(8, "Größe".encode("latin1")), (33, "Größe".encode()), (None, "Größe".encode())]
)
def test_the_text_is_in_the_character_set_of_its_client(collation, text):
    status = b"" if collation is None else b"\x04" + bytes([collation, 0]) * 3
    (dropped,) = effects_of(decode_statement(query(b"DROP TABLE " + text, b"d", status)))
    assert dropped.table == TableName("d", "Größe")


@pytest.mark.parametrize(("flags", "has_effect"), [(2, False), (4, True), (8, False), (0, True)])
def test_an_alter_that_has_only_begun_or_was_rolled_back_does_nothing(flags, has_effect):
    status = bytes([130, flags]) + bytes(8) * bool(flags & 12)
    assert bool(effects_of(decode_statement(query(b"ALTER TABLE t ADD a INT", b"d", status)))) is has_effect


def test_each_two_phase_alter_of_a_real_log_counts_once():
    found = [
        decode_statement(event)
        for event in raw_events(CLASSIC / "11.8/alter-two-phase")
        if event[4] in (EventType.QUERY, EventType.QUERY_COMPRESSED)
    ]
    altered = [one for one in found if one.text.upper().startswith("ALTER TABLE")]
    begun = {one.text for one in altered if not one.has_effect}
    assert begun & {one.text for one in altered if one.has_effect}
    assert all(effects_of(one) for one in altered if one.has_effect)


def test_load_data_is_a_statement_too():
    assert LOGGED
    for statement in map(decode_statement, LOGGED):
        assert statement.text.startswith("LOAD DATA")
        assert [one.tables for one in effects_of(statement)] == [(TableName("stmt", "l"),)]


def test_a_damaged_event_is_an_error():
    event = query(b"DROP TABLE t")
    load = event[:4] + bytes([EventType.EXECUTE_LOAD_QUERY]) + event[5:]
    for damaged in (load[:40], event[:25]):
        with pytest.raises(EventError):
            decode_statement(damaged)


@pytest.mark.parametrize("event", LOGGED)
def test_a_logged_one_is_written_as_it_was_read(event):
    load, header = decode_load_data(event), decode_event_header(event)
    named = load.query.text[load.start : load.end]
    assert named.split()[0] in (b"LOCAL", b"INFILE")
    assert named.endswith(b"INTO")
    assert load.query.text[load.end :].startswith(b" TABLE")
    assert event == encode_load_data(
        load, server_id=header.server_id, timestamp=header.timestamp, log_pos=header.log_pos, flags=header.flags
    )


@pytest.mark.parametrize("event", LOGGED[:1])
def test_none_that_is_cut_or_names_its_file_elsewhere_is_read(event):
    for size in range(19, 19 + FIXED.size + FILE.size):
        with pytest.raises(EventError):
            decode_load_data(event[:size])
    load = decode_load_data(event)
    size = len(load.query.text)
    for start, end in ((load.end + 1, load.end), (0, size + 1), (size + 1, size + 2)):
        with pytest.raises(EventError, match=f"names its file in bytes {start} to {end}"):
            decode_load_data(encode_load_data(dataclasses.replace(load, start=start, end=end), server_id=1))
