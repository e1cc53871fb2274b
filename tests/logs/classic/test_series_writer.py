import struct
import tracemalloc
from contextlib import closing
from dataclasses import replace

import pytest

from ibbmaster.errors import ConfigurationError, EventError, StoreError
from ibbmaster.gtid import GtidState
from ibbmaster.logs.classic.series_writer import ClassicWriter
from ibbmaster.replication.dump.profile import PROFILES
from ibbmaster.replication.event.control import decode_gtid_list, encode_xid
from ibbmaster.replication.event.format_description import ChecksumAlgorithm
from ibbmaster.replication.event.header import decode_event_header, encode_event, has_valid_checksum, without_checksum
from ibbmaster.replication.event.rows.partial import encode_fragments
from ibbmaster.replication.event.types import EventFlag, EventType
from ibbmaster.storage.disk.local import RealDisk
from tests.machinery.events import event_offsets, gtid_of, make_gtid_event

CLASSIC = PROFILES["classic-11.8"]
NEAR = {"server_id": 1, "timestamp": 1000}
XID = encode_xid(7, server_id=1)


def row_event(size):
    return encode_event(event_type=EventType.WRITE_ROWS_V1, body=bytes(size), server_id=1)


def gtid_event(seq_no):
    return make_gtid_event(gtid_of(seq_no))


@pytest.fixture
def disk(tmp_path):
    with closing(RealDisk(tmp_path)) as disk:
        yield disk


@pytest.fixture
def writer(disk):
    writer = ClassicWriter(disk, CLASSIC)
    writer.begin_file(**NEAR)
    return writer


def headers(path):
    data = path.read_bytes()
    return [decode_event_header(data, offset) for offset in event_offsets(data)]


def types_in(path):
    return [EventType(header.event_type) for header in headers(path)]


HEAD = [EventType.FORMAT_DESCRIPTION, EventType.GTID_LIST, EventType.BINLOG_CHECKPOINT]


def test_a_file_is_in_use_until_it_is_ended(writer, tmp_path):
    path = tmp_path / "binlog.000001"
    assert headers(path)[0].flags & EventFlag.IN_USE
    writer.write_group(gtid_event(1), [XID])
    writer.end_file(is_last=True, **NEAR)
    assert not headers(path)[0].flags & EventFlag.IN_USE
    assert types_in(path) == [*HEAD, EventType.GTID, EventType.XID, EventType.STOP]


def test_files_end_between_groups(disk, tmp_path):
    writer = ClassicWriter(disk, CLASSIC, state=GtidState.parse("3-1-9"), stem="log")
    for seq_no in (1, 2):
        writer.begin_file(is_start=seq_no == 1, **NEAR)
        writer.write_group(gtid_event(seq_no), [row_event(100), XID])
        writer.state.log(gtid_of(seq_no))
        writer.end_file(is_last=seq_no == 2, **NEAR)
    writer.write_state()
    writer.sync()

    assert writer.names == ["log.000001", "log.000002"]
    assert (tmp_path / "log.index").read_text() == "./log.000001\n./log.000002\n"
    assert (tmp_path / "log.state").read_text() == "3-1-9\n0-1-2\n"
    first, second = ((tmp_path / name).read_bytes() for name in writer.names)
    assert types_in(tmp_path / "log.000001")[-1] == EventType.ROTATE
    created = [struct.unpack_from("<I", data, 4 + 19 + 52)[0] for data in (first, second)]
    assert created == [1000, 0]  # only the first was begun by a start of the server
    start = 4 + decode_event_header(second, 4).size
    listed = decode_gtid_list(without_checksum(second[start : start + decode_event_header(second, start).size]))
    assert {str(gtid) for gtid in listed.gtids} == {"0-1-1", "3-1-9"}


@pytest.mark.parametrize("checksum", [ChecksumAlgorithm.CRC32, ChecksumAlgorithm.NONE])
@pytest.mark.parametrize("profile", ["classic-10.11", "classic-11.8"])
@pytest.mark.parametrize("size", [10, 70_000, 3_000_000], ids=["small", "in parts", "large"])
def test_each_event_says_where_it_ends_as_its_server_does(disk, tmp_path, profile, checksum, size):
    writer = ClassicWriter(disk, replace(PROFILES[profile], event_checksum=checksum))
    writer.begin_file(**NEAR)
    body = row_event(size) + XID
    pieces = [body[start : start + 1000] for start in range(0, len(body), 1000)]
    assert writer.write_group(gtid_event(1), pieces) == len(gtid_event(1)) + len(body)
    writer.end_file(is_last=True, **NEAR)
    data, offset = (tmp_path / "binlog.000001").read_bytes(), 4
    for header in headers(tmp_path / "binlog.000001"):
        event = data[offset : offset + header.size]
        offset += header.size
        inside = header.event_type == EventType.WRITE_ROWS_V1 and profile == "classic-11.8"
        assert header.log_pos == (0 if inside else offset)
        if checksum is ChecksumAlgorithm.CRC32:
            assert has_valid_checksum(event)
        elif header.event_type == EventType.WRITE_ROWS_V1:
            assert event[19:] == bytes(size)
    assert offset == len(data)


def test_memory_does_not_grow_with_an_event(writer):
    head, piece = row_event(0)[:19], bytes(1 << 16)
    head = head[:9] + struct.pack("<I", 19 + 512 * len(piece)) + head[13:]
    tracemalloc.start()
    writer.write_group(gtid_event(1), iter([head, *[piece] * 512, XID]))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 << 20


def test_fragments_of_row_events_are_put_together_for_servers_that_do_not_know_them(writer, tmp_path):
    whole = row_event(5000)
    fragments = list(encode_fragments(whole, 1000))
    assert len(fragments) > 3
    writer.write_group(gtid_event(1), [*fragments, XID])
    writer.end_file(is_last=True, **NEAR)
    assert types_in(tmp_path / "binlog.000001")[3:6] == [EventType.GTID, EventType.WRITE_ROWS_V1, EventType.XID]
    assert whole[19:] in (tmp_path / "binlog.000001").read_bytes()


UNKNOWN = encode_event(event_type=200, body=b"", server_id=1)
BROKEN = {
    "no end": ([row_event(10)], "it has no event that ends it, as XID or COMMIT: traditional files cannot hold it"),
    "more after its end": ([XID, row_event(10)], "WRITE_ROWS_V1 event after the end of its group"),
    "an unknown event": ([UNKNOWN, XID], "type 200 event, which MariaDB 11.8.6-MariaDB-log does not know"),
    "half an event": ([row_event(10)[:-3]], "the events end inside an event, 3 bytes early"),
    "half a large event": ([row_event(100_000)[:-3]], "the events end inside an event, 3 bytes early"),
    "half a header": ([XID, b"1234"], "event header of 4 bytes, expected 19"),
}


@pytest.mark.parametrize(("body", "problem"), BROKEN.values(), ids=BROKEN)
def test_what_traditional_files_cannot_hold_is_an_error(writer, body, problem):
    with pytest.raises(EventError) as error:
        writer.write_group(gtid_event(1), body)
    assert str(error.value) == problem


def test_an_engine_has_no_traditional_files_and_a_file_in_the_way_stays(disk, tmp_path):
    with pytest.raises(ConfigurationError, match="a primary as 'engine' has no traditional files"):
        ClassicWriter(disk, PROFILES["engine"])
    (tmp_path / "binlog.000001").write_text("mine")
    with pytest.raises(StoreError, match=r"binlog\.000001: File exists"):
        ClassicWriter(disk, CLASSIC).begin_file(**NEAR)
    assert (tmp_path / "binlog.000001").read_text() == "mine"
