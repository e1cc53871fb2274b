"""A series of traditional binlog files as one stream; every captured series of a real server."""

import json
import shutil
import struct
import zlib
from collections import Counter
from pathlib import Path

import pytest

from ibbmaster.classic.binlog import ClassicReader
from ibbmaster.classic.series import find_series
from ibbmaster.errors import ClassicFormatError
from ibbmaster.gtid import GtidState

CLASSIC = Path(__file__).parents[2] / "fixtures" / "classic"
SERIES = sorted(path.parent.relative_to(CLASSIC).as_posix() for path in CLASSIC.glob("*/*/expected.json"))
ENCRYPTED = {"10.11/encrypted", "11.8/encrypted"}
NOT_IN_GROUPS = {"FORMAT_DESCRIPTION", "GTID_LIST", "BINLOG_CHECKPOINT", "ROTATE", "STOP", "START_ENCRYPTION"}
TYPE_NAMES = {
    2: "QUERY",
    5: "INTVAR",
    9: "APPEND_BLOCK",
    13: "RAND",
    14: "USER_VAR",
    16: "XID",
    17: "BEGIN_LOAD_QUERY",
    18: "EXECUTE_LOAD_QUERY",
    19: "TABLE_MAP",
    23: "WRITE_ROWS_V1",
    24: "UPDATE_ROWS_V1",
    25: "DELETE_ROWS_V1",
    38: "XA_PREPARE",
    160: "ANNOTATE_ROWS",
    162: "GTID",
    165: "QUERY_COMPRESSED",
    166: "WRITE_ROWS_COMPRESSED_V1",
    167: "UPDATE_ROWS_COMPRESSED_V1",
    168: "DELETE_ROWS_COMPRESSED_V1",
}


def event_types(data: bytes) -> Counter[str]:
    found: Counter[str] = Counter()
    position = 0
    while position < len(data):
        found[TYPE_NAMES[data[position + 4]]] += 1
        (size,) = struct.unpack_from("<I", data, position + 9)
        assert data[position + 13 : position + 17] == bytes(4), "log_pos is 0"
        position += size
    assert position == len(data)
    return found


@pytest.mark.parametrize("series", [name for name in SERIES if name not in ENCRYPTED])
def test_every_captured_series_gives_its_groups_events_and_state(series: str) -> None:
    expected = json.loads((CLASSIC / series / "expected.json").read_text())
    reader = ClassicReader(find_series([CLASSIC / series]))
    found: Counter[str] = Counter()
    for group in reader.groups():
        found += event_types(group.gtid_event)
        found += event_types(b"".join(map(bytes, group.body)))
    assert found["GTID"] == expected["event_groups"]
    assert found == {name: count for name, count in expected["events"].items() if name not in NOT_IN_GROUPS}
    assert reader.initial_state == GtidState()
    assert sorted(map(str, reader.state)) == sorted(filter(None, expected["gtid_binlog_state_after"].split(",")))
    assert str(reader.state.position()) == expected["gtid_binlog_pos_after"]
    assert reader.bytes_read == reader.size_bytes
    assert reader.notices == []


@pytest.mark.parametrize("series", sorted(ENCRYPTED))
def test_an_encrypted_binlog_is_refused_with_advice(series: str) -> None:
    with pytest.raises(ClassicFormatError, match=r"binlog\.000001 offset 256: .*encrypted.*mariadb-binlog"):
        ClassicReader(find_series([CLASSIC / series]))


def test_restarts_of_the_server_are_counted() -> None:
    reader = ClassicReader(find_series([CLASSIC / "11.8" / "domains"]))
    assert sum(1 for _ in reader.groups()) == 155
    assert reader.restart_count == 2  # one clean, one after SIGKILL


def test_reading_may_begin_in_the_middle_of_a_series() -> None:
    files = sorted((CLASSIC / "11.8" / "checksum-switch").glob("binlog.*"))
    reader = ClassicReader(find_series(files[2:]))
    assert str(reader.initial_state) == "0-1-10"
    gtids = [str(group.gtid) for group in reader.groups()]
    assert gtids[0] == "0-1-11"
    assert gtids[-1] == "0-1-19"


@pytest.mark.parametrize("name", ["domains", "domains-none"])
@pytest.mark.parametrize("missing", range(2, 9))
def test_a_missing_file_is_an_error_that_names_both_neighbours(tmp_path: Path, name: str, missing: int) -> None:
    for path in (CLASSIC / "11.8" / name).glob("binlog.00000?"):
        shutil.copy(path, tmp_path)
    (tmp_path / f"binlog.{missing:06d}").unlink()
    before, after = f"binlog.{missing - 1:06d}", f"binlog.{missing + 1:06d}"
    with pytest.raises(ClassicFormatError, match=f"^{after} offset .*{before} ends at"):
        for _ in ClassicReader(find_series([tmp_path])).groups():
            pass


def test_files_of_two_servers_do_not_make_a_series(tmp_path: Path) -> None:
    shutil.copy(CLASSIC / "11.8" / "vectors" / "binlog.000001", tmp_path)
    shutil.copy(CLASSIC / "11.8" / "checksum-switch" / "binlog.000002", tmp_path)
    with pytest.raises(ClassicFormatError, match="not of one binlog"):
        for _ in ClassicReader(find_series([tmp_path])).groups():
            pass


def test_a_head_that_cannot_be_read_is_found_before_the_first_group(tmp_path: Path) -> None:
    for path in (CLASSIC / "11.8" / "checksum-switch").glob("binlog.00000?"):
        shutil.copy(path, tmp_path)
    (tmp_path / "binlog.000003").write_bytes(b"\xfebin")
    with pytest.raises(ClassicFormatError, match=r"^binlog\.000003 offset 0: the file ends inside its head"):
        ClassicReader(find_series([tmp_path]))


def test_a_domain_that_the_server_forgot_is_no_gap(tmp_path: Path) -> None:
    source = CLASSIC / "11.8" / "domains-none"
    for number in (1, 2):
        shutil.copy(source / f"binlog.{number:06d}", tmp_path)
    whole = (tmp_path / "binlog.000002").read_bytes()
    start = 4 + struct.unpack_from("<I", whole, 4 + 9)[0]
    size = struct.unpack_from("<I", whole, start + 9)[0]
    listed = struct.unpack_from("<I", whole, start + 19)[0]
    entries = [struct.unpack_from("<IIQ", whole, start + 23 + 16 * index) for index in range(listed)]
    kept = [entry for entry in entries if entry[0] != 7]
    assert len(kept) < len(entries)
    head = whole[start : start + 9] + struct.pack("<II", 23 + 16 * len(kept), start + 23 + 16 * len(kept))
    event = head + whole[start + 17 : start + 19] + struct.pack("<I", len(kept))
    event += b"".join(struct.pack("<IIQ", *entry) for entry in kept)
    tail = bytearray(whole[start + size :])
    shift = size - len(event)
    position = 0
    while position < len(tail):  # events behind it move, and say where they end
        (event_size, log_pos) = struct.unpack_from("<II", tail, position + 9)
        struct.pack_into("<I", tail, position + 13, log_pos - shift if log_pos else 0)
        position += event_size
    (tmp_path / "binlog.000002").write_bytes(whole[:start] + event + tail)
    reader = ClassicReader(find_series([tmp_path]))
    assert sum(1 for _ in reader.groups()) == 60
    assert reader.notices == ["binlog.000002: the server forgot domain 7 here (DELETE_DOMAIN_ID)"]


def test_checksums_of_the_fixtures_are_zlib_crc32() -> None:
    """The check the reader relies on: an event with its checksum behind it has a constant CRC-32."""
    assert zlib.crc32(b"event" + struct.pack("<I", zlib.crc32(b"event"))) == 0x2144DF1C
