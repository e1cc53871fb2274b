"""The tables of protocol/store against the code."""

import importlib
import re
import struct
from dataclasses import fields

import pytest

from ibbmaster.logs.archive import manifest
from ibbmaster.logs.log.group_writer import GroupWriter
from ibbmaster.logs.log.interface import LogEngine, WritableLogEngine
from ibbmaster.logs.store import redo_log, redo_names, redo_record
from ibbmaster.logs.store.binlog_store import BinlogStore
from ibbmaster.logs.store.redo_record import Cut, Purge, Reset, decode_record, encode_record
from tests.protocol.documents import read_tables


def table(document, heading, *, index=0):
    return read_tables(f"protocol/store/{document}", heading)[index]


def sizes(heading):
    return [int(row["Size"]) for row in table("redo-log.md", heading) if row["Size"].isdigit()]


def test_a_segment_has_the_fields_of_the_table():
    data = redo_record.encode_segment_header(0x1122334455, 0x66778899AA)
    assert sum(sizes("Segment")) == redo_record.SEGMENT_HEADER.size
    assert data[:4] == b"IBBR"
    version, checksum = redo_record.SEGMENT_VERSION, redo_record.crc32c(data[:24])
    assert struct.unpack_from("<IQQI", data, 4) == (version, 0x1122334455, 0x66778899AA, checksum)
    assert version == 1
    assert len(data) == redo_record.RECORDS_START == 4096
    assert redo_log.FIRST_LSN == 8192
    assert redo_names.SEGMENT_NAMES == ("ibbmaster-redo-0", "ibbmaster-redo-1")


def test_what_a_writer_says_is_durable_has_the_fields_that_are_described():
    data = redo_record.encode_durable_end(0x66778899AA)
    assert sum(sizes("Durable end")) == redo_record.DURABLE_END.size == len(data)
    assert data[:8] == bytes.fromhex("4942424401000000")
    assert int.from_bytes(data[8:16], "little") == redo_record.decode_durable_end(data) == 0x66778899AA
    for size in range(len(data)):
        assert redo_record.decode_durable_end(data[:size] + b"x" * (len(data) - size)) is None


def test_a_record_has_the_fields_of_the_table():
    data = encode_record(0x0102030405060708, 0x0A0B0C0D, [Reset()])
    assert sum(sizes("Record")) == redo_record.RECORD_HEADER.size
    checksum = redo_record.crc32c(data[:16] + data[20:])
    assert data == struct.pack("<QIIIB", 0x0102030405060708, 1, 0x0A0B0C0D, checksum, 4)


def test_an_item_begins_with_its_number():
    for item, number in ((Cut(file_no=1, size_pages=2), 3), (Purge(first_file_no=1), 7)):
        assert decode_record(encode_record(1, 1, [item]), 0, 1, 1).payload[0] == number


OWNERS = {"GroupWriter": GroupWriter, "BinlogStore": BinlogStore}


@pytest.mark.parametrize("row", table("engine.md", "The engine interface"), ids=lambda row: row["MariaDB"])
def test_each_method_that_the_table_names_is_there(row):
    for name in re.findall(r"`([\w.]+)`", row["Here"]):
        owner, _, attribute = name.rpartition(".")
        if owner.startswith("ibbmaster"):
            assert hasattr(importlib.import_module(owner), attribute)
        else:
            assert hasattr(OWNERS.get(owner, WritableLogEngine), attribute), name


def test_the_protocols_have_no_method_that_the_table_does_not_name_but_for_finding_places():
    named = {
        name.rpartition(".")[2]
        for row in table("engine.md", "The engine interface")
        for name in re.findall(r"`([\w.]+)`", row["Here"] + row["Remark"])
    }
    methods = {name for name in dir(WritableLogEngine) if not name.startswith("_")}
    assert methods - named == {
        *("close", "state", "wait_for_growth", "tell_growth", "unfinished", "ranges", "groups_in"),
        *("is_over", "with_past", "with_left_out", "reset_count", "opened_to", "server_version_of", "around"),
    }
    assert set(dir(LogEngine)) <= set(dir(WritableLogEngine))


@pytest.mark.parametrize("row", table("engine.md", "The engine interface", index=1), ids=lambda row: row["Engine"])
def test_each_engine_of_the_table_is_one(row):
    module = importlib.import_module(row["Module"].strip("`"))
    wanted = WritableLogEngine if row["Writes"] == "yes" else LogEngine
    assert any(
        isinstance(value, type) and wanted in value.__mro__[1:] and value.__module__ == module.__name__
        for value in vars(module).values()
    )


@pytest.mark.parametrize(("index", "kind"), [(0, manifest.Head), (1, manifest.Segment)], ids=["head", "entry"])
def test_the_manifest_of_an_archive_has_the_fields_of_the_table(index, kind):
    rows = table("archive.md", "The manifest of an archive", index=index)
    said = [name for row in rows for name in re.findall(r"`(\w+)`", row["Field"])]
    assert [name for name in said if name != "format"] == [field.name for field in fields(kind)]


def test_a_page_of_a_manifest_has_the_fields_of_the_table():
    [row] = [row for row in table("archive.md", "The manifest of an archive") if row["Field"] == "`pages`"]
    assert set(re.findall(r"`(\w+)`", row["Meaning"])) == {field.name for field in fields(manifest.SealedPage)}
