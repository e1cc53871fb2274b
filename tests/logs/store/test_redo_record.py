import contextlib
import random
from dataclasses import replace

import pytest

from ibbmaster.errors import StoreError
from ibbmaster.logs.store import redo_record
from ibbmaster.logs.store.redo_record import Checkpoint, Cut, Reset, XaEntry, decode_record, encode_record
from ibbmaster.position import LogPosition
from ibbmaster.storage.codec.crc32c import crc32c
from ibbmaster.storage.ibb.appender import PageChange
from ibbmaster.storage.ibb.commit import OobStream
from ibbmaster.storage.ibb.file_header import FIELDS, encode_page_of_fields
from ibbmaster.storage.ibb.xa import Xid

XID = Xid(format_id=7, gtrid=b"global", bqual=b"")
STREAM = OobStream(node_count=3, first=LogPosition(1, 16389), last=LogPosition(2, 40000))
ENTRY = XaEntry(xid=XID, state=redo_record.XaState.PREPARED, engine_count=2, first_file_no=1, stream=STREAM)
STREAMLESS = replace(ENTRY, state=redo_record.XaState.ROLLED_BACK, engine_count=0, first_file_no=70_000, stream=None)
ITEMS = {
    "a page change": PageChange(3, 5, 100, b"some bytes of a page"),
    "a header": PageChange(300, 0, 0, encode_page_of_fields(bytes(range(FIELDS.size)))),
    "a cut": Cut(file_no=3, size_pages=2**20),
    "a purge": redo_record.Purge(first_file_no=2**31),
    "a reset": Reset(),
    "a prepared transaction": ENTRY,
    "one without a stream": STREAMLESS,
    "a checkpoint": Checkpoint(lsn=2**40, end=LogPosition.on_page(2, 3, 4), xa=(ENTRY, STREAMLESS)),
    "a checkpoint before the first file": Checkpoint(lsn=8192, end=None, xa=()),
}


@pytest.mark.parametrize("item", ITEMS.values(), ids=ITEMS)
def test_comes_back_as_it_was_written(item):
    data = encode_record(5000, 2, [item, Cut(file_no=1, size_pages=1)])
    record = decode_record(data, 0, 5000, 2)
    assert record.items() == [item, Cut(file_no=1, size_pages=1)]
    assert record.end_lsn == 5000 + len(data)


@pytest.mark.parametrize("number", [0, 1, 31, 32, 8191, 8192, 2**21 - 1, 2**21, 2**31])
@pytest.mark.parametrize("size", [1, 31, 32, 16379])
def test_a_record_of_one_change_is_the_same_however_it_is_made(number, size):
    change = PageChange(number, number + 1, min(number, 16380 - size), b"a" * size)
    for lsn, life in ((8192, 1), (2**33, 2**31)):
        assert redo_record.encode_change(lsn, life, *change) == encode_record(lsn, life, [change])


def test_a_record_of_every_item_is_refused_at_every_truncation_and_every_flipped_bit():
    data = encode_record(5000, 2, ITEMS.values())
    for size in range(len(data)):
        assert decode_record(data[:size], 0, 5000, 2) is None, size
    for bit in range(len(data) * 8):
        damaged = bytearray(data)
        damaged[bit // 8] ^= 1 << bit % 8
        assert decode_record(damaged, 0, 5000, 2) is None, bit


def test_a_record_of_another_lsn_or_an_earlier_life_is_none_and_a_later_life_begins_with_a_checkpoint():
    assert decode_record(encode_record(5000, 2, [Reset()]), 0, 5001, 2) is None
    assert decode_record(encode_record(5000, 1, [Reset()]), 0, 5000, 2) is None
    assert decode_record(encode_record(5000, 3, [Reset()]), 0, 5000, 2) is None
    assert decode_record(encode_record(5000, 3, [ITEMS["a checkpoint"]]), 0, 5000, 2) is not None


def record_of(payload):
    head = redo_record.CHECKED_HEADER.pack(5000, len(payload), 2)
    return decode_record(head + crc32c(head + payload).to_bytes(4, "little") + payload, 0, 5000, 2)


def test_items_that_make_no_sense_are_at_most_an_error():
    rng = random.Random(random.randrange(2**32))
    payload = encode_record(5000, 2, ITEMS.values())[redo_record.RECORD_HEADER.size :]
    for _ in range(3000):
        damaged = bytearray(payload)
        for _ in range(rng.randrange(1, 4)):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        with contextlib.suppress(StoreError):  # any other error is a mistake
            record_of(damaged).items()


def test_items_that_leave_their_record_and_a_later_version_are_errors(monkeypatch):
    record = record_of(encode_record(5000, 2, [ITEMS["a page change"]])[redo_record.RECORD_HEADER.size : -1])
    with pytest.raises(StoreError, match="LSN 5000: a page change leaves its record"):
        record.items()
    monkeypatch.setattr(redo_record, "SEGMENT_VERSION", 2)
    data = redo_record.encode_segment_header(1 << 20, 12345)
    monkeypatch.undo()
    with pytest.raises(StoreError, match="version 2, this reads version 1"):
        redo_record.decode_segment_header(data)


def test_a_segment_header_has_its_size_and_first_lsn_and_with_a_flipped_bit_is_none():
    size = redo_record.SEGMENT_HEADER.size
    data = redo_record.encode_segment_header(1 << 20, 12345)
    assert (len(data), redo_record.decode_segment_header(data)) == (redo_record.RECORDS_START, (1 << 20, 12345))
    for bit in range(size * 8):
        damaged = bytearray(data)
        damaged[bit // 8] ^= 1 << bit % 8
        assert redo_record.decode_segment_header(damaged) is None, bit
    assert all(redo_record.decode_segment_header(data[:length]) is None for length in range(size))
