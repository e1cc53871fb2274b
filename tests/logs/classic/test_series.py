import os
import random
import re
import struct
from contextlib import closing, nullcontext

import pytest

from ibbmaster.errors import ClassicFormatError, MissingFileError, StoreError
from ibbmaster.logs.classic.head import head_of, without_unbegun
from ibbmaster.logs.classic.packing import packing_of
from ibbmaster.logs.classic.series import ClassicSource, classic_file, find_series, read_whole
from ibbmaster.replication.event.header import append_checksum
from tests.built_logs import FIXTURES
from tests.case_table import rows_of
from tests.machinery.packers import PACK

MAGIC = b"\xfebin"
WHOLE = (FIXTURES / "classic" / "10.11" / "domains" / "binlog.000009").read_bytes()
DESCRIBED = 256  # bytes of it with its FORMAT_DESCRIPTION
HEAD = WHOLE[:603]  # with its GTID_LIST


def make(directory, *names):
    paths = [directory / name for name in names]
    for path in paths:
        path.write_bytes(PACK.get(path.suffix, bytes)(HEAD + path.name.encode()))
    return paths


def names(*paths):
    return [file.name for file in without_unbegun(find_series(paths))]


def test_files_are_sorted_by_the_number_in_their_name(tmp_path):
    paths = make(tmp_path, "b.1000000", "b.000010", "b.000009", "b.999999.xz")
    assert names(*paths) == ["b.000009", "b.000010", "b.999999", "b.1000000"]
    assert names(*make(tmp_path, "copy-of-binlog")) == ["copy-of-binlog"]


def test_a_directory_gives_the_files_of_its_one_binlog(tmp_path):
    make(tmp_path, "b.000002", "b.000001.xz")
    (tmp_path / "b.000001.idx").write_bytes(b"x")
    (tmp_path / "b.index").write_bytes(b"x")
    (tmp_path / "table.000001").write_bytes(b"not a binlog")
    (tmp_path / "b.000003").mkdir()
    os.mkfifo(tmp_path / "b.000004")
    assert names(tmp_path) == ["b.000001", "b.000002"]


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_file_in_the_row_that_does_not_begin_as_a_binlog_is_not_passed_over(tmp_path, number):
    for each in (1, 2, 3):
        (tmp_path / f"binlog.{each:06}").write_bytes(HEAD)
    damaged = tmp_path / f"binlog.{number:06}"
    damaged.write_bytes(b"\xfebix")
    (tmp_path / "notes.000001").write_text("of something else")
    files = find_series([tmp_path])
    assert [file.number for file in files] == [1, 2, 3]
    with pytest.raises(ClassicFormatError, match=rf"{damaged.name}.*begins with fe 62 69 78"):
        head_of(files[number - 1])


def test_the_last_file_is_left_out_exactly_while_its_head_cannot_be_read(tmp_path):
    first, last = make(tmp_path, "b.000001", "b.000002")
    index = tmp_path / "b.index"
    index.write_text("./b.000001\n./b.000002\n")
    for size in range(len(HEAD) + 100):
        last.write_bytes(WHOLE[:size])
        is_whole = size >= len(HEAD)
        with nullcontext() if is_whole else pytest.raises(ClassicFormatError, match="ends inside its head"):
            head_of(classic_file(last))
        expected = ["b.000001", "b.000002"] if is_whole else ["b.000001"]
        assert names(tmp_path) == names(index) == names(first, last) == expected
    last.write_bytes(WHOLE[:100])
    with pytest.raises(ClassicFormatError, match="the file ends inside its head"):
        head_of(find_series([last])[0])
    make(tmp_path, "b.000003")  # of those before the last one none is left out
    assert names(tmp_path) == ["b.000001", "b.000002", "b.000003"]


def test_a_relay_log_is_called_one():
    with pytest.raises(ClassicFormatError, match="this is a relay log, which a replica keeps of its primary"):
        head_of(find_series([FIXTURES / "relay-log"])[0])


@pytest.mark.parametrize("event_type", [33, 34, 35], ids=["GTID", "ANONYMOUS_GTID", "PREVIOUS_GTIDS"])
def test_a_log_of_mysql_is_called_one(tmp_path, event_type):
    event = append_checksum(struct.pack("<IBIIIH", 0, event_type, 1, 31, DESCRIBED + 31, 0) + bytes(8))
    (tmp_path / "b.000001").write_bytes(WHOLE[:DESCRIBED] + event)
    with pytest.raises(ClassicFormatError, match=r"offset 256: MySQL .* wrote this binlog: only binlogs of MariaDB"):
        head_of(find_series([tmp_path])[0])


REFUSED = rows_of(__file__, "refused")


@pytest.mark.parametrize(("name", "made", "named", "problem"), REFUSED, ids=[row[0] for row in REFUSED])
def test_what_is_no_binlog_is_refused(tmp_path, name, made, named, problem):
    make(tmp_path, *made.split())
    if "fifo" in name:
        os.mkfifo(tmp_path / named)
    with pytest.raises(MissingFileError if problem == "is not a file" else StoreError, match=problem):
        names(*(tmp_path / one for one in named.split()))


def test_an_index_file_names_files_beside_it_or_elsewhere_wherever_the_server_had_them(tmp_path):
    make(tmp_path, "b.000001", "b.000002.xz", "other.000001")
    index = tmp_path / "b.index"
    index.write_text("./b.000001\n\n/var/lib/mysql/b.000002\n")
    assert names(index) == ["b.000001", "b.000002"]
    index.write_bytes(b".\\b.000001\r\nC:\\MariaDB\\data\\b.000002\r\n")
    assert names(index) == ["b.000001", "b.000002"]
    (tmp_path / "data").mkdir()
    (tmp_path / "b.index").write_text(f"{make(tmp_path / 'data', 'b.000001')[0]}\n")
    assert names(tmp_path / "b.index") == ["b.000001"]


@pytest.mark.parametrize("text", ["./b.000007\n", "b.\0\n", "..\n", "\n"])
def test_an_index_file_that_names_no_file_is_refused(tmp_path, text):
    (tmp_path / "b.index").write_text(text)
    with pytest.raises(StoreError, match="there is no such file" if text.strip() else "names no file"):
        names(tmp_path / "b.index")


def read_all(path, size):
    data = b""
    with closing(ClassicSource(find_series([path])[0])) as source:
        while piece := source.read(len(data), size):
            assert len(piece) <= size
            data += piece
    assert source.bytes_read == path.stat().st_size
    return data


@pytest.mark.parametrize("size", [1, 7, 4096, 1 << 20])
@pytest.mark.parametrize("packed", ["", *PACK])
def test_the_bytes_of_a_file_come_in_pieces(tmp_path, size, packed):
    data = MAGIC + bytes(range(256)) * 40
    path = tmp_path / f"b.000001{packed}"
    path.write_bytes(PACK.get(packed, bytes)(data))
    assert read_all(path, size) == data


@pytest.mark.parametrize("packed", ["", *(suffix for suffix in PACK if suffix != ".bz2")])  # which takes long
def test_any_part_of_a_file_can_be_read_again(tmp_path, packed):
    rng = random.Random(1)
    data = rng.randbytes(100_000) * 60
    path = tmp_path / f"b.000001{packed}"
    path.write_bytes(PACK.get(packed, bytes)(data))
    with closing(ClassicSource(find_series([path])[0])) as source:
        for offset in [0, 5_900_000, 3_000_000, 3_500_000, 1, 6_000_000, *(rng.randrange(6_100_000) for _ in range(9))]:
            target = bytearray(rng.randrange(1, 400_000))
            size = source.read_into(offset, memoryview(target))
            assert target[:size] == data[offset : offset + len(target)]
            assert source.read(offset, 1000) == data[offset : offset + 1000] or packed


@pytest.mark.parametrize("packed", PACK)
def test_damage_in_packed_data_is_met_again_by_who_comes_later(tmp_path, packed):
    path = tmp_path / f"b.000001{packed}"
    path.write_bytes(PACK[packed](MAGIC + random.Random(1).randbytes(300_000))[:-1000])
    with closing(ClassicSource(find_series([path])[0])) as source:
        errors = set()
        for offset in (0, 290_000, 0, 299_500, 299_600):
            with pytest.raises(ClassicFormatError) as error:
                source.read_into(offset, memoryview(bytearray(400_000)))
            errors.add(str(error.value))
        assert len(errors) == 1
        assert source.read(0, 4) == MAGIC


@pytest.mark.parametrize("packed", PACK)
def test_packed_streams_and_their_padding_are_one_file_that_unpacks_in_bounded_steps(tmp_path, packed):
    path = tmp_path / f"b.000001{packed}"
    if packed != ".br":  # it has one
        path.write_bytes(PACK[packed](b"first ") + bytes(8) + PACK[packed](b"second") + bytes(4))
        assert read_all(path, 1 << 20) == read_all(path, 1) == b"first second"
    path.write_bytes(PACK[packed](bytes(50_000_000)))
    with closing(ClassicSource(find_series([path])[0])) as source:
        assert len(source.read(0, 1000)) == 1000


@pytest.mark.parametrize("packed", PACK)
def test_damaged_or_cut_packed_data_is_an_error_of_the_file(tmp_path, packed):
    path = tmp_path / f"b.000001{packed}"
    data = MAGIC + bytes(range(256)) * 4
    whole = PACK[packed](data)
    problem = rf"^b\.000001 offset \d+: .*{packing_of(path.name).name} data"
    for cut in range(len(whole)):
        path.write_bytes(whole[:cut])
        with pytest.raises(ClassicFormatError, match=problem):
            read_all(path, 100)
    if packed in (".lzma", ".br"):
        return  # they have no checksum: those of the events are all there is
    harmless, problems = set(), set()
    for position in range(len(whole)):
        path.write_bytes(whole[:position] + bytes([whole[position] ^ 0x10]) + whole[position + 1 :])
        try:
            assert read_all(path, 100) == data
            harmless.add(position)
        except ClassicFormatError as error:
            problems.add(str(error))
    assert [one for one in problems if not re.match(problem, one)] == []
    # When it was packed, and bits without a meaning.
    meaningless = {".xz": set(), ".gz": {*range(3, 10), len(whole) - 9}, ".zst": {4}, ".lz4": set()}
    assert harmless <= meaningless.get(packed, harmless)  # tables of bzip2 have more than it uses


def test_a_zstd_file_that_asks_for_more_memory_than_any_is_refused(tmp_path):
    path = tmp_path / "b.000001.zst"
    path.write_bytes(b"\x28\xb5\x2f\xfd" + bytes([0, (30 - 10) << 3]) + b"\x01\x00\x00")  # a window of 1 GiB
    with pytest.raises(ClassicFormatError, match="damaged zstd data"):
        read_all(path, 100)


@pytest.mark.parametrize("grown_to", [60, 99, 100, 101, 500])
def test_a_file_is_read_at_once_only_where_all_that_it_has_by_then_fits(tmp_path, grown_to):
    path, target = tmp_path / "b.000001", memoryview(bytearray(100))
    path.write_bytes(bytes(50))
    (file,) = find_series([path])
    path.write_bytes(b"x" * grown_to)  # since it was looked at
    size = read_whole(file, target)
    assert size == (grown_to if grown_to < 100 else None)
    assert size is None or target[:size] == b"x" * size
