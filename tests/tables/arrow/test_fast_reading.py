"""What kernels read is what the careful path reads, for every fixture and every kind of row image."""

import dataclasses
import datetime
import ipaddress
import os
import random
import shutil
import uuid
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest
from lanes.replay import CLASSIC, raw_events

from ibbmaster.errors import EventError, FormatError, IbbMasterError
from ibbmaster.gtid import Gtid
from ibbmaster.kernel.loading import load
from ibbmaster.logs.log.group_content import RowReader, group_events, table_name
from ibbmaster.logs.store.writer import BinlogWriter
from ibbmaster.position import LOG_START
from ibbmaster.replication.event.column_types.temporal import DATETIME2_ZERO
from ibbmaster.replication.event.header import EVENT_HEADER_SIZE, TYPE_OFFSET
from ibbmaster.replication.event.rows.changes import ChangeKind
from ibbmaster.replication.event.rows.charset import CODECS, NO_LETTER, charset_of, decode_text, letters_of
from ibbmaster.replication.event.rows.encoding import encode_rows, encode_table_map, written_table
from ibbmaster.replication.event.table_map import ROW_EVENT_TYPES
from ibbmaster.replication.event.types import EventType
from ibbmaster.storage.disk.local import RealDisk
from ibbmaster.storage.ibb.page import DATA_SIZE, PAGE_SIZE
from ibbmaster.tables.arrow import collecting, fast_reading, reading, row_columns
from ibbmaster.tables.arrow.fast_reading import fast_batches, is_fast
from ibbmaster.tables.arrow.options import parse_options
from ibbmaster.tables.arrow.plan import find_fields, open_log, plan_tasks
from ibbmaster.tables.arrow.reading import batches, rows_of
from tests.damage import flip
from tests.machinery.events import make_event, make_gtid_event
from tests.table_versions import without_statements
from tests.written_log import deleted, inserted, updated, write_log

FIXTURES = Path(__file__).parents[3] / "fixtures"
CHUNK_HEAD_SIZE = 3
LETTERS = "abcdefghijklmnopqrstuvwxyz"
TYPES = ",".join(f"types.{letter}*" for letter in LETTERS if letter != "o")
#: All but types.old_temporal, of whose values nothing tells the digits.
TABLES = f"{TYPES},{','.join(f'{letter}*.*' for letter in LETTERS if letter != 't')}"
CAPTURES = [
    "10.11/types-minimal-none",
    "10.11/types-noblob-compressed",
    "11.8/types-full_nodup",
    "11.8/vectors",
    "11.8/alter-two-phase",
]


@pytest.fixture(scope="module")
def kernels():
    ready = load()
    assert ready is not None
    return ready


@pytest.fixture(params=[path.name for path in sorted((FIXTURES / "ibb").iterdir())] + CAPTURES)
def directory(request, imported):
    return imported(request.param) if "/" in request.param else FIXTURES / "ibb" / request.param


def tables_of(directory, *, is_classic=False):
    reader, names = RowReader(), set()
    with closing(open_log(parse_options({"path": str(directory)}, is_classic=is_classic))) as log:
        for log_range in log.ranges(LOG_START, log.end(), size=1 << 40):
            for group in log.groups_in(log_range):
                maps = (event for event in group_events(group) if event[TYPE_OFFSET] == EventType.TABLE_MAP)
                schemas = [decoder.schema for decoder in map(reader.decoder, maps) if decoder is not None]
                names |= {schema.name for schema in schemas if schema.has_names}
    return sorted(names - {"types.old_temporal"})  # nothing tells its digits


def both_ways(kernels):
    return (lambda task: batches(task.fields, rows_of(task)), lambda task: fast_batches(task, kernels))


def read_all(options, read):
    for task in plan_tasks(options, find_fields(options)):
        list(read(task))


def compare(kernels, directory, *, is_classic=False, **given):
    options = parse_options({"path": str(directory), **given}, is_classic=is_classic)
    fields = find_fields(options)
    count = 0
    for task in plan_tasks(options, fields):
        assert is_fast(task)
        fast = fast_batches(task, kernels)
        rest = next(fast)
        for careful in batches(fields, rows_of(task)):  # piece by piece: some have 222 MB
            assert rest.schema == careful.schema
            while careful.num_rows:
                rest = rest if rest.num_rows else next(fast)
                size = min(rest.num_rows, careful.num_rows)
                for name in careful.schema.names:
                    assert rest[name].slice(0, size).equals(careful[name].slice(0, size)), (given, name)
                rest, careful = rest.slice(size), careful.slice(size)
                count += size
        assert not rest.num_rows
        assert not any(batch.num_rows for batch in fast)
    return count


def test_events_and_groups(kernels, directory):
    assert compare(kernels, directory, granularity="events", partitionBytes="16k") > 20
    assert compare(kernels, directory, granularity="groups", partitionBytes="16k") > 10
    compare(kernels, directory, granularity="groups", tables="types.*,shop.p*,vec.*", columns="tables,_gtid")


def test_events_and_groups_of_one_range_that_lie_in_many_batches(kernels, directory, monkeypatch):
    monkeypatch.setattr(collecting, "DATA_BYTES", 1_100_000)
    monkeypatch.setattr(collecting, "GROUPS_MAX", 7)
    for granularity in ("groups", "events"):
        compare(kernels, directory, granularity=granularity)


@pytest.mark.parametrize("zero_dates", ["null", "text"])
def test_rows_of_each_table(kernels, directory, zero_dates):
    for name in tables_of(directory):
        given = {"table": name, "partitionBytes": "64k", "zeroDates": zero_dates}
        assert compare(kernels, directory, **given)
        columns = [field.name for field in find_fields(parse_options({"path": str(directory), **given}))]
        some = ["_absent", "_change_no", "_gtid", *columns[-3:]]
        compare(kernels, directory, columns=",".join(dict.fromkeys(some)), **given)


def test_rows_of_all_tables_without_their_values(kernels, directory):
    columns = "_gtid,_table,_change_type,_change_no,_commit_ts,_offset"
    compare(kernels, directory, columns=columns, tables=f"{TYPES},dom*.*,shop*.*,vec.*")


@pytest.mark.parametrize("size", ["16k", "256m"])
def test_rows_of_all_tables_as_text(kernels, directory, size):
    assert compare(kernels, directory, tables=TABLES, partitionBytes=size)
    compare(kernels, directory, tables=TABLES, columns="after,_change_type,_table")


def test_record_batches_of_images_that_are_full(kernels, directory, monkeypatch):
    monkeypatch.setattr(row_columns, "ROWS_MAX", 3)
    monkeypatch.setattr(fast_reading.ImageColumns, "BYTES_MAX", 1000)
    compare(kernels, directory, tables=TABLES, partitionBytes="64k")
    for name in tables_of(directory)[:6]:  # full in the middle of an event
        compare(kernels, directory, table=name, columns="_gtid,_change_no,_change_type", partitionBytes="64k")


@pytest.mark.parametrize(
    "given",
    [
        {"startingGtid": "0-1-10", "endingGtid": "0-1-60"},
        {"domains": "0"},
        {"domains": "5"},
        {"startingTimestamp": "2020-01-01", "endingTimestamp": "2100-01-01T00:00:00Z"},
        {"endingTimestamp": "2001-01-01"},
        {"path": str(FIXTURES / "ibb/domains"), "domains": "7,2"},
        {"path": str(FIXTURES / "ibb/domains"), "endingGtid": "0-1-5,7-1-9"},
    ],
    ids=str,
)
def test_selections(kernels, given):
    compare(kernels, FIXTURES / "ibb/types", granularity="events", partitionBytes="32k", **given)


@pytest.mark.parametrize("granularity", ["pages", "records", "events", "groups", "rows", "faults"])
def test_no_file_stays_open(kernels, granularity):
    def open_files():
        links = [Path("/proc/self/fd") / number for number in os.listdir("/proc/self/fd")]
        return sorted(str(link.readlink()) for link in links if link.is_symlink())

    given = {"path": str(FIXTURES / "ibb/domains"), "granularity": granularity, "startingGtid": "7-1-9"}
    before = open_files()
    options = parse_options(given)
    for task in plan_tasks(options, find_fields(options)):
        list(rows_of(task))
        assert not is_fast(task) or list(fast_batches(task, kernels))
    assert open_files() == before


def test_a_range_that_begins_after_a_large_group_on_its_page_ends_where_the_next_file_begins(kernels):
    position = "0-4294967295-6,1-4294967295-5,2-4294967295-5,7-1-3,4294967295-4294967295-6"
    options = parse_options({"path": str(FIXTURES / "ibb-mariadb/mixed"), "startingGtid": position})
    fields = find_fields(options)
    for task in plan_tasks(options, fields):
        assert pa.Table.from_batches(fast_batches(task, kernels)) == pa.Table.from_batches(
            batches(fields, rows_of(task))
        )


def test_damage_is_the_same_error(kernels, tmp_path):
    shutil.copytree(FIXTURES / "ibb/types", tmp_path, dirs_exist_ok=True)
    flip(tmp_path / "binlog-000001.ibb", 3 * PAGE_SIZE + 5000)
    options = parse_options({"path": str(tmp_path), "granularity": "events"})
    found = []
    for read in both_ways(kernels):
        with pytest.raises(FormatError) as caught:
            read_all(options, read)
        found.append(caught.value.location)
    assert found[0] == found[1]


@pytest.mark.parametrize("page_no", [1, 3])
def test_each_page_that_is_damaged_is_one_fault_and_the_rest_is_read(tmp_path, page_no):
    shutil.copytree(FIXTURES / "ibb/domains", tmp_path, dirs_exist_ok=True)
    flip(tmp_path / "binlog-000000.ibb", page_no * PAGE_SIZE + 900)
    given = {"path": str(tmp_path), "failOnDataLoss": "false"}
    counts = {}
    for granularity in ("faults", "groups"):
        options = parse_options(given | {"granularity": granularity})
        counts[granularity] = len([row for task in plan_tasks(options, find_fields(options)) for row in rows_of(task)])
    assert counts["faults"] == 1
    assert 60 < counts["groups"] < 155


def row_events():
    table_map = b""
    for event in raw_events(CLASSIC / "11.8/types-full-crc32"):
        if event[4] == EventType.TABLE_MAP:
            table_map = event
        elif event[4] in ROW_EVENT_TYPES and "old_temporal" not in table_name(table_map).name:
            yield table_map, event


@pytest.mark.parametrize("has_table", [True, False], ids=["table", "all"])
def test_flipped_bits_in_a_row_event_are_the_same_rows_or_an_error_for_both(kernels, tmp_path, has_table):
    rng = random.Random(random.randrange(2**32))
    pairs = list(row_events())
    failures = 0
    for number in range(150):
        table_map, event = rng.choice(pairs)
        broken = bytearray(event)
        broken[rng.randrange(EVENT_HEADER_SIZE + 8, len(event))] ^= 1 << rng.randrange(8)
        directory = write_log(tmp_path / str(number), [[table_map, bytes(broken)]])
        options = parse_options({"path": str(directory)} | ({"table": str(table_name(table_map))} if has_table else {}))
        (task,) = plan_tasks(options, find_fields(options))
        found = []
        for read in both_ways(kernels):
            try:
                found.append(pa.Table.from_batches(read(task)).combine_chunks())
            except EventError:
                found.append(None)
        if found[0] is None or found[1] is None:
            assert found[0] is found[1], table_name(table_map)
            failures += 1
            continue
        for name in found[0].column_names:
            careful, fast = found[0][name].to_pylist(), found[1][name].to_pylist()
            assert repr(careful) == repr(fast), (table_name(table_map), name)  # as text: a NaN is not equal to itself
    assert 0 < failures < 150


@pytest.mark.parametrize(
    ("clock", "is_there"),
    [((23, 59, 59), True), ((24, 0, 0), False), ((0, 60, 0), False), ((0, 0, 60), False), ((31, 63, 63), False)],
)
def test_a_datetime_whose_clock_is_none_is_null_for_both(kernels, tmp_path, clock, is_there):
    table = written_table("db.t", {"moment": "datetime"}, table_id=1)
    hour, minute, second = clock
    packed = (9999 * 13 + 12) << 22 | 31 << 17 | hour << 12 | minute << 6 | second
    write_images(tmp_path, table, [b"\0" + (packed + DATETIME2_ZERO).to_bytes(5, "big")])
    assert compare(kernels, tmp_path, table="db.t") == 1
    (task,) = plan_tasks(options := parse_options({"path": str(tmp_path), "table": "db.t"}), find_fields(options))
    (moment,) = pa.Table.from_batches(fast_batches(task, kernels))["moment"].to_pylist()
    assert moment == (datetime.datetime(9999, 12, 31, *clock) if is_there else None)


@pytest.mark.parametrize("given", [{}, {"table": "db.t"}, {"table": "db.t", "zeroDates": "text"}])
def test_a_timestamp_is_zero_only_if_no_stored_digit_is_set(kernels, tmp_path, given):
    table = written_table("db.t", {"moment": "timestamp(5)"}, table_id=1)
    write_images(tmp_path, table, [b"\0" + bytes(4) + fraction.to_bytes(3, "big") for fraction in (0, 4, 40)])
    assert compare(kernels, tmp_path, **given) == 3


COLLATIONS = {charset_of(number): number for number in range(1, 100)}
OF_SINGLE_BYTES = [name for name in CODECS if letters_of(name) is not None]


def table_of(charset):
    table = written_table("db.t", {"short": "varchar(30)", "number": "int", "long": "text"}, table_id=1)
    short, number, long = table.columns
    own = {"collation": COLLATIONS[charset]}
    short = dataclasses.replace(short, **own, encode=lambda data: bytes([len(data)]) + data)
    long = dataclasses.replace(long, **own, encode=lambda data: bytes([len(data), 0]) + data)
    return dataclasses.replace(table, columns=(short, number, long))


@pytest.mark.parametrize("charset", OF_SINGLE_BYTES)
def test_text_of_single_bytes_is_made_by_kernels_for_every_byte_and_image(kernels, tmp_path, monkeypatch, charset):
    rng = random.Random(random.randrange(2**32))
    letters = letters_of(charset)
    good = [byte for byte in range(256) if letters[byte] != NO_LETTER]
    texts = [bytes([byte]) for byte in good] + [b"", b"plain", bytes(good[-20:])]
    texts += [bytes(rng.choices(good, k=rng.randrange(30))) for _ in range(100)]
    table = table_of(charset)
    rows = [[text, number, rng.choice([None, text + b"!"])] for number, text in enumerate(texts)]
    write_log(
        tmp_path,
        [
            inserted(table, *rows),
            updated(table, *zip(rows, reversed(rows), strict=True)),
            deleted(table, *rows),
            updated(table, *zip(rows, rows, strict=True), columns=((1,), (0, 2))),
        ],
    )
    monkeypatch.delattr(row_columns.RowColumns, "_slow_array")
    count = compare(kernels, tmp_path, table="db.t")
    assert count == 6 * len(texts)
    assert compare(kernels, tmp_path, table="db.t", columns="long,_change_type") == count
    compare(kernels, tmp_path)  # images, as text
    (task,) = plan_tasks(options := parse_options({"path": str(tmp_path), "table": "db.t"}), find_fields(options))
    found = pa.Table.from_batches(fast_batches(task, kernels))["short"].to_pylist()
    assert found[: len(good)] == [decode_text(bytes([byte]), charset) for byte in good]


@pytest.mark.parametrize("given", [{}, {"table": "db.t"}], ids=["all", "one"])
def test_what_is_shown_as_text_is_made_by_kernels_for_every_image(kernels, tmp_path, monkeypatch, given):
    rng = random.Random(random.randrange(2**32))
    columns = {"id": "int", "key": "uuid", "clock": "time(3)", "peer": "inet6", "old": "inet4"}
    columns |= {"raw": "binary(5)"} if given else {}
    table = written_table("db.t", columns, table_id=1, primary_key=("id",))
    make = (
        lambda: uuid.UUID(int=rng.getrandbits(128) & rng.getrandbits(128)),
        lambda: f"{rng.choice(('-', ''))}{rng.randrange(839):02}:59:07.{rng.randrange(1000):03}",
        lambda: ipaddress.IPv6Address(rng.choice([0, 1, 0xFFFF << 32, 1 << 127, rng.getrandbits(128)])),
        lambda: ipaddress.IPv4Address(rng.choice([0, 1 << 24, rng.getrandbits(32)])),
        lambda: rng.randbytes(rng.randrange(6)),
    )[: len(columns) - 1]
    rows = [[number, *(rng.choice([None, one()]) for one in make)] for number in range(200)]
    write_log(
        tmp_path,
        [
            inserted(table, *rows),
            updated(table, *zip(rows, reversed(rows), strict=True)),
            updated(table, *zip(rows, rows, strict=True), columns=((0,), (1, 3))),
        ],
    )
    declared = ", ".join(f"`{name}` {kind}" for name, kind in columns.items())
    declared = f"CREATE TABLE db.t ({declared}, PRIMARY KEY (id))"
    monkeypatch.delattr(row_columns.RowColumns, "_slow_array")
    assert compare(kernels, tmp_path, schema=declared, **given) == 5 * len(rows)


@pytest.mark.parametrize("charset", [name for name in OF_SINGLE_BYTES if NO_LETTER in letters_of(name)])
def test_a_byte_that_is_no_letter_is_the_same_error_for_both(kernels, tmp_path, charset):
    table = table_of(charset)
    byte = letters_of(charset).index(NO_LETTER)
    write_images(tmp_path, table, [table.image([text, 1, text]) for text in (b"a", b"a" + bytes([byte]))])
    for given in ({"table": "db.t"}, {}):
        options = parse_options({"path": str(tmp_path), **given})
        said = []
        for read in both_ways(kernels):
            with pytest.raises(EventError) as caught:
                read_all(options, read)
            said.append(str(caught.value))
        assert said[0] == said[1]
        assert "group 0-1-1" in said[0]
        assert "db.t column short" in said[0]


def write_images(directory, table, images):
    rows = encode_rows(table, ChangeKind.INSERT, [(None, image) for image in images], server_id=1)
    write_log(directory, [[encode_table_map(table, server_id=1), *rows]])


@pytest.fixture
def damaged(tmp_path, imported):
    directory = imported("11.8/domains")
    flip(sorted(directory.glob("binlog-*.ibb"))[0], 2 * PAGE_SIZE + 777)
    return directory


@pytest.mark.parametrize("granularity", ["events", "groups", "rows", "faults"])
@pytest.mark.parametrize("is_damaged", [False, True])
def test_where_damage_is_passed_over_kernels_read_what_is_sound(kernels, monkeypatch, damaged, granularity, is_damaged):
    given = {"granularity": granularity, "failOnDataLoss": "false", "partitionBytes": "16k"}
    options = parse_options({"path": str(damaged if is_damaged else FIXTURES / "ibb" / "xa-and-ddl"), **given})
    by_hand = []
    careful = reading.rows_of
    monkeypatch.setattr(reading, "rows_of", lambda task, begin=LOG_START: by_hand.append(task) or careful(task, begin))
    tasks = plan_tasks(options, find_fields(options))
    for task in tasks:
        found = pa.Table.from_batches(reading.read_task(task)).to_pylist()
        assert found == pa.Table.from_batches(batches(task.fields, careful(task))).to_pylist()
        assert bool(found) == (task in by_hand) or granularity != "faults"
    assert 0 < len(by_hand) < len(tasks) if is_damaged else not by_hand


@pytest.mark.parametrize("granularity", ["events", "groups", "rows"])
@pytest.mark.parametrize("capture", ["11.8/domains", "11.8/large-commit"])
@pytest.mark.parametrize("is_classic", [False, True], ids=["ibb", "classic"])
@pytest.mark.parametrize("is_damaged", [False, True], ids=["sound", "damaged"])
def test_where_damage_is_skipped_a_range_is_read_once_up_to_the_damage(
    kernels, monkeypatch, imported, tmp_path, granularity, capture, is_classic, is_damaged
):
    directory = tmp_path / "copy"
    shutil.copytree(CLASSIC / capture if is_classic else imported(capture), directory)
    if is_damaged:
        path = sorted(path for path in directory.iterdir() if path.suffix[1:].isdigit() or path.suffix == ".ibb")[0]
        flip(path, len(path.read_bytes().rstrip(b"\0")) * 9 // 10)
    monkeypatch.setattr(collecting, "DATA_BYTES", 1_100_000)
    monkeypatch.setattr(collecting, "GROUPS_MAX", 7)
    begins, opened = [], []
    careful, collect = reading.rows_of, fast_reading.event_batches
    monkeypatch.setattr(reading, "rows_of", lambda task, begin=LOG_START: begins.append(begin) or careful(task, begin))
    monkeypatch.setattr(
        fast_reading, "event_batches", lambda *given, **strict: opened.append(given) or collect(*given, **strict)
    )
    given = {"path": str(directory), "granularity": granularity, "failOnDataLoss": "false", "partitionBytes": "1g"}
    options = parse_options(given, is_classic=is_classic)
    tasks = plan_tasks(options, find_fields(options))
    for task in tasks:
        found = pa.Table.from_batches(reading.read_task(task)).to_pylist()
        assert found == pa.Table.from_batches(batches(task.fields, careful(task))).to_pylist()
    assert len(opened) == len(tasks)
    assert bool(begins) == is_damaged
    if capture == "11.8/domains":  # the other begins with a large group, of which nothing may be given away
        assert all(begin > LOG_START for begin in begins)


@pytest.mark.parametrize("is_damaged", [False, True])
def test_faults_may_be_asked_for_by_some_of_their_columns(kernels, damaged, is_damaged):
    directory = damaged if is_damaged else FIXTURES / "ibb" / "xa-and-ddl"
    options = parse_options(
        {"path": str(directory), "granularity": "faults", "columns": "problem,_gtid", "failOnDataLoss": "false"}
    )
    tables = [pa.Table.from_batches(reading.read_task(task)) for task in plan_tasks(options, find_fields(options))]
    assert {tuple(table.column_names) for table in tables} == {("problem", "_gtid")}
    assert bool(sum(table.num_rows for table in tables)) == is_damaged


def log_of_full_pages(directory):
    xid = make_event(16, 1, bytes(8))
    with BinlogWriter(RealDisk(directory), max_file_bytes=256 << 10) as writer:
        for number in range(1, 100):
            gtid = Gtid(domain_id=0, server_id=1, seq_no=number)
            event = make_gtid_event(gtid)
            size = 6000
            if number == 3:
                left = DATA_SIZE - writer.end.page_offset
                size = left - CHUNK_HEAD_SIZE - 1 - len(event) - len(xid) - EVENT_HEADER_SIZE
            writer.write_group(gtid, event, [make_event(EventType.ANNOTATE_ROWS, 1, bytes(size)), xid])
            if number == 3:
                assert writer.end.page_offset in (0, DATA_SIZE)
                cut = -(-writer.end.offset // PAGE_SIZE) * PAGE_SIZE
    return cut


def test_a_file_that_was_cut_between_two_groups_is_damage_that_names_it_or_the_next_one(kernels, tmp_path):
    cut = log_of_full_pages(tmp_path)
    first = tmp_path / "binlog-000000.ibb"
    assert first.stat().st_size > cut
    os.truncate(first, cut)
    said = r"000000\.ibb page .* no FLUSH has ended it here|000001\.ibb page 1 .*groups before it end with number 3"
    for size in ("16k", "1g"):
        given = {"path": str(tmp_path), "granularity": "events", "partitionBytes": size}
        for read in both_ways(kernels):
            with pytest.raises(FormatError, match=said):
                read_all(parse_options(given), read)
    options = parse_options(given | {"granularity": "faults", "failOnDataLoss": "false"})
    (fault,) = [row for task in plan_tasks(options, find_fields(options)) for row in rows_of(task)]
    assert fault[:2] == (0, cut)


def test_a_value_that_cannot_be_read_is_an_error_that_names_group_table_column_and_type(kernels, tmp_path):
    path = without_statements(FIXTURES / "ibb/types", tmp_path / "log")  # they tell the digits of a second
    options = parse_options({"path": str(path), "table": "types.old_temporal", "columns": "_gtid,dt4"})
    with pytest.raises(EventError, match=r"group 0-1-\d+.*: types.old_temporal column dt4 of type DATETIME"):
        read_all(options, lambda task: fast_batches(task, kernels))


CLASSIC_CAPTURES = sorted(
    path.relative_to(CLASSIC).as_posix()
    for path in CLASSIC.glob("*/*")
    if path.name not in ("encrypted", "big") and path.parts[-2:] != ("10.11", "big-none")
)


@pytest.mark.parametrize("capture", CLASSIC_CAPTURES)
def test_traditional_files(kernels, capture):
    directory = CLASSIC / capture
    for granularity in ("events", "groups"):
        assert compare(kernels, directory, is_classic=True, granularity=granularity)
    compare(kernels, directory, is_classic=True, tables=TABLES)
    for name in tables_of(directory, is_classic=True):
        assert compare(kernels, directory, is_classic=True, table=name)


def test_traditional_files_in_many_batches(kernels, monkeypatch):
    monkeypatch.setattr(collecting, "DATA_BYTES", 1_100_000)
    monkeypatch.setattr(collecting, "GROUPS_MAX", 7)
    for capture in ("11.8/domains", "11.8/large-commit", "10.11/types-full-crc32"):
        for granularity in ("groups", "events"):
            compare(kernels, CLASSIC / capture, is_classic=True, granularity=granularity)


@pytest.mark.parametrize("given", [{"startingGtid": "0-1-20,1-1-20"}, {"endingGtid": "0-1-20,1-1-20"}])
def test_a_part_of_traditional_files(kernels, given):
    whole = compare(kernels, CLASSIC / "11.8/domains", is_classic=True, granularity="groups")
    assert 0 < compare(kernels, CLASSIC / "11.8/domains", is_classic=True, granularity="groups", **given) < whole


def test_kernels_take_most_groups_of_traditional_files(kernels, monkeypatch):
    slow = []
    careful = collecting.GroupBatches._by_reference
    monkeypatch.setattr(
        collecting.GroupBatches, "_by_reference", lambda self, group: slow.append(group.gtid) or careful(self, group)
    )
    count = compare(kernels, CLASSIC / "11.8/domains", is_classic=True, granularity="groups")
    assert len(slow) < count / 4


@pytest.mark.parametrize("capture", ["11.8/checksum-switch", "11.8/crashed", "11.8/domains"])
def test_damage_of_traditional_files_is_told_alike(kernels, tmp_path, capture):
    rng = random.Random(random.randrange(2**32))
    files = [path for path in sorted((CLASSIC / capture).glob("binlog.0*")) if path.suffix != ".idx"]
    told = set()
    for number in range(60):
        directory = tmp_path / str(number)
        directory.mkdir()
        for path in files:
            (directory / path.name).write_bytes(path.read_bytes())
        target = directory / rng.choice(files).name
        flip(target, rng.randrange(target.stat().st_size), 1 << rng.randrange(8))
        found = []
        for read in both_ways(kernels):
            rows = []
            try:
                options = parse_options({"path": str(directory), "granularity": "events"}, is_classic=True)
                for task in plan_tasks(options, find_fields(options)):
                    rows += pa.Table.from_batches(read(task)).to_pylist()
            except IbbMasterError as error:
                rows.append(str(error))
                told.add(str(error))
            found.append(rows)
        assert found[0] == found[1], number
    assert told


@pytest.mark.parametrize("given", [{}, {"table": "db.t700"}], ids=["all", "one"])
@pytest.mark.parametrize("distance", [1, 512, 1 << 40], ids=["near", "same place", "far"])
def test_one_group_may_change_more_tables_than_any_number(kernels, tmp_path, given, distance):
    tables = [
        written_table(f"db.t{number}", {"a": "int"}, table_id=1 + number * distance % ((1 << 48) - 1))
        for number in range(1500)
    ]
    mapped = [encode_table_map(table, server_id=1) for table in tables]
    rows = [event for table in tables for event in inserted(table, [table.table_id % 1000])[1:]]
    write_log(tmp_path, [inserted(tables[0], [1])], [[*mapped, *rows, *rows]], [inserted(tables[700], [2])])
    assert compare(kernels, tmp_path, partitionBytes="16k", **given) == (3 if given else 3002)


def test_a_table_of_the_group_before_is_unknown_in_the_next(kernels, tmp_path):
    table = written_table("db.t", {"a": "int"}, table_id=7)
    write_log(tmp_path, [inserted(table, [1])], [inserted(table, [2])[1:]])
    options = parse_options({"path": str(tmp_path)})
    for read in both_ways(kernels):
        with pytest.raises(EventError, match=r"group 0-1-2 .*row event of table 7, which no TABLE_MAP of its group"):
            read_all(options, read)


def test_a_record_batch_that_is_kept_stays_what_it_is(kernels, tmp_path):
    columns = {"a": "bigint", "b": "datetime(6)", "c": "double", "d": "int", "e": "varchar(9)", "f": "decimal(30,2)"}
    moment = datetime.datetime(2000, 1, 1)
    tables = [written_table("db.t", columns, table_id=number) for number in (1, 2)]
    groups = [
        [inserted(tables[number % 2], [number, moment + datetime.timedelta(number), 1.5 * number, number, "x", number])]
        for number in range(20)
    ]
    write_log(tmp_path, *groups)
    assert compare(kernels, tmp_path, table="db.t") == 20


@pytest.mark.parametrize("given", [{}, {"table": "db.t"}], ids=["all", "one"])
def test_numbers_do_not_get_the_upper_halves_of_those_that_a_wider_column_had_before(kernels, tmp_path, given):
    rng = random.Random(random.randrange(2**32))
    kinds = {"decimal(20,0)": (1 - 10**20, 10**20 - 1), "bigint unsigned": (0, 2**64 - 1)}
    groups = []
    for number in range(1, 40):
        declared, (low, high) = rng.choice(list(kinds.items()))
        table = written_table("db.t", {"a": "int", "n": declared}, table_id=number)
        values = [[row, rng.choice([None, low, high, rng.randint(low, high)])] for row in range(5)]
        groups.append([inserted(table, *values)])
    write_log(tmp_path, *groups)
    assert compare(kernels, tmp_path, **given) == 39 * 5


def test_rows_from_before_columns_had_names_are_an_error_and_not_all_null(kernels, tmp_path):
    table = written_table("db.t", {"a": "int"}, table_id=7)
    named = encode_table_map(table, server_id=1)
    size = named.index(b"\x04\x02\x01a")  # COLUMN_NAME, the last of the optional fields
    nameless = named[:9] + size.to_bytes(4, "little") + named[13:size]
    write_log(tmp_path, [[nameless, *inserted(table, [1])[1:]]], [inserted(table, [2])])
    for read in both_ways(kernels):
        with pytest.raises(EventError, match=r"group 0-1-1 .*db\.t: its columns have no names here"):
            read_all(parse_options({"path": str(tmp_path), "table": "db.t"}), read)
    assert compare(kernels, tmp_path, table="db.t", columns="_gtid,_change_type") == 2
    assert compare(kernels, tmp_path, table="db.t", schema="CREATE TABLE db.t (a INT)") == 2
