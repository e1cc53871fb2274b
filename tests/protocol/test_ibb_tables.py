"""The tables of protocol/ibb against the code, so that neither can drift."""

from pathlib import Path

import pytest

from ibbmaster.gtid import Gtid
from ibbmaster.position import LogPosition
from ibbmaster.storage.codec import compressed_int
from ibbmaster.storage.ibb import chunk, file_header, page, xa
from ibbmaster.storage.ibb.chunk import RecordType
from ibbmaster.storage.ibb.commit import CommitHeader, OobStream, encode_commit_header
from ibbmaster.storage.ibb.gtid_state import encode_gtid_state
from tests.protocol.documents import places_of, read_tables

IBB = Path(__file__).parents[2] / "protocol" / "ibb"
REF = LogPosition(0, 16389)


def table(document, heading):
    return read_tables(f"protocol/ibb/{document}", heading)[0]


@pytest.mark.parametrize("row", table("compressed-int.md", "Sizes"), ids=lambda row: f"tag {row['Tag']}")
def test_compressed_integers_have_the_sizes_of_the_table(row):
    largest = int(row["Largest value"])
    encoded = compressed_int.encode(largest)
    assert (len(encoded), encoded[0] & compressed_int.TAG_MASK) == (int(row["Size"]), int(row["Tag"]))
    assert largest == compressed_int.VALUE_MAX or len(compressed_int.encode(largest + 1)) > len(encoded)


def test_a_page_has_the_parts_of_the_table():
    assert places_of(table("page.md", "Layout")) == {
        "data": (0, page.DATA_SIZE),
        "checksum": (page.DATA_SIZE, page.CHECKSUM.size),
    }
    assert page.DATA_SIZE + page.CHECKSUM.size == page.PAGE_SIZE


def test_a_header_has_the_fields_of_the_table():
    header = file_header.FileHeader(
        file_no=0x11, size_pages=0x22, start_lsn=0x33, state_interval_pages=0x44, oob_file_no=0x10, xa_file_no=None
    )
    encoded = file_header.encode_file_header(header)
    values = {
        "magic": file_header.MAGIC,
        "page size": file_header.PAGE_SIZE_LOG2,
        "major version": 1,
        "minor version": 0,
        "file number": 0x11,
        "size": 0x22,
        "start LSN": 0x33,
        "state interval": 0x44,
        "out-of-band reference": 0x10,
        "XA reference": 2**64 - 1,
    }
    rows = table("file-header.md", "Layout")
    assert sum(int(row["Size"]) for row in rows) == page.PAGE_SIZE == len(encoded)
    for row in rows:
        start, size = int(row["Offset"]), int(row["Size"])
        found = int.from_bytes(encoded[start : start + size], "little")
        if row["Field"] == "unused":
            assert not found
        elif "checksum" not in row["Field"]:
            assert found == values.pop(row["Field"])
        elif row["Field"] == "short checksum":
            assert start == file_header.SHORT_CHECKSUM_OFFSET
    assert not values
    assert encoded[-4:][::-1].hex() in (IBB / "file-header.md").read_text()


def test_a_chunk_has_the_fields_of_the_table():
    rows = places_of(table("chunk.md", "Layout"))
    encoded = chunk.encode_chunk(RecordType.COMMIT, b"data", is_first=False, is_last=True)
    start, size = rows["length"]
    assert int.from_bytes(encoded[start : start + size], "little") == 4
    assert encoded[rows["type"][0]] == RecordType.COMMIT | chunk.CONT | chunk.LAST == 0x01 | 0x80 | 0x40
    assert encoded[start + size :] == b"data"


def test_commit_headers_have_the_forms_of_the_table():
    stream = OobStream(node_count=7, first=REF, last=LogPosition(0, 16475))
    for row, count in zip(table("commit.md", "Layout"), (0, 1, 2), strict=True):
        header = encode_commit_header(CommitHeader(streams=(stream,) * count))
        assert header.endswith(b"\0") == row["Header"].endswith("`0`")
        numbers = offset = 0
        while offset < len(header):
            _, offset = compressed_int.decode(header, offset)
            numbers += 1
        fields = sum(2 if "2" in field["Size"] else 1 for field in table("commit.md", "Stream"))
        assert numbers == count * fields + (count < 2)


def test_a_gtid_state_has_the_fields_of_the_table():
    assert [row["Field"] for row in table("gtid-state.md", "Layout")] == ["count", "XA reference", "entries"]
    assert encode_gtid_state([Gtid.parse("1-2-3")], 4) == bytes([1 << 3, 5 << 3, 1 << 3, 2 << 3, 3 << 3])
    assert encode_gtid_state([], None) == bytes([0, 0])


@pytest.mark.parametrize("heading", ["Prepare", "Complete"])
def test_xa_records_have_the_fields_of_the_table(heading):
    xid = xa.Xid(format_id=0x0A0B0C0D, gtrid=b"gtr", bqual=b"bq")
    stream = OobStream(node_count=1, first=REF, last=REF)
    encoded = {
        "Prepare": xa.encode_xa_prepare(xa.XaPrepare(engine_count=1, xid=xid, stream=stream)),
        "Complete": xa.encode_xa_complete(xa.XaComplete(xid=xid, is_rollback=True)),
    }[heading]
    fields = {
        name: int.from_bytes(encoded[start : start + size], "little")
        for name, (start, size) in places_of(table("xa.md", heading)).items()
    }
    first = {"Prepare": "engine count", "Complete": "flags"}[heading]
    assert fields == {first: 1, "format id": 0x0A0B0C0D, "gtrid length": 3, "bqual length": 2}
    xid_offset = next(int(row["Offset"]) for row in table("xa.md", heading) if row["Field"] == "XID")
    assert encoded[xid_offset:][:5] == b"gtrbq"
