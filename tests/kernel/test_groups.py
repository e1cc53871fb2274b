"""Whole groups of a block of pages as packets: what is framed, and what is left to the reference."""

import numpy as np
import pytest

from ibbmaster.errors import RecordError
from ibbmaster.gtid import Gtid
from ibbmaster.kernel.calls import Framing
from ibbmaster.kernel.fields import PAIR_COLUMNS, ChunkColumn, Field, Status
from ibbmaster.logs.log.event_groups import decode_first_event
from ibbmaster.position import LogPosition
from ibbmaster.replication.event.gtid_event import GTID_EVENT_SIZE_MIN, decode_gtid
from ibbmaster.replication.event.header import SIZE_OFFSET, decode_event_header
from ibbmaster.storage.ibb.chunk import RecordType, encode_chunk
from ibbmaster.storage.ibb.page import PAGE_SIZE, seal_page
from tests.machinery.events import make_event, make_gtid_event
from tests.machinery.random_log import random_log
from tests.machinery.simulated_disk import SimulatedDisk

OUT_BYTES = 576 * 1024


def make_framing(*, chunks_max):
    state = np.zeros(Field.SIZE, dtype=np.int64)
    state[Field.PREFIX_SIZE] = 1
    state[Field.SKIP_TYPE] = state[Field.NESTED_TYPE] = -1
    return Framing(
        state=state,
        head=np.zeros(32, dtype=np.uint8),
        begin=np.zeros(64, dtype=np.uint8),
        prefix=np.zeros(8, dtype=np.uint8),
        pairs=np.zeros((64, PAIR_COLUMNS), dtype=np.int64),
        table=np.empty((chunks_max, ChunkColumn.COLUMNS), dtype=np.int32),
        out=np.empty(OUT_BYTES, dtype=np.uint8),
        segments=np.zeros((0, 3), dtype=np.int64),
    )


@pytest.mark.parametrize("size", [GTID_EVENT_SIZE_MIN - 1, GTID_EVENT_SIZE_MIN])
def test_a_gtid_event_that_the_reference_refuses_is_left_to_it(kernels, size):
    gtid_event = bytearray(make_gtid_event(Gtid(domain_id=0, server_id=1, seq_no=7))[:size])
    gtid_event[SIZE_OFFSET : SIZE_OFFSET + 4] = size.to_bytes(4, "little")
    record = b"\0" + gtid_event + make_event(16, 1, bytes(8))
    page = bytearray(encode_chunk(RecordType.COMMIT, record, is_first=True, is_last=True).ljust(PAGE_SIZE, b"\0"))
    seal_page(page)
    framing = make_framing(chunks_max=8)
    status = kernels.frame_table(np.frombuffer(page, dtype=np.uint8), 1, framing)
    if size < GTID_EVENT_SIZE_MIN:
        assert (status, framing.state[Field.GROUPS], framing.state[Field.OFFSET]) == (Status.FALLBACK, 0, 0)
        with pytest.raises(RecordError, match=f"GTID event of {size} bytes"):
            decode_first_event(record, 1, LogPosition(0, PAGE_SIZE))
    else:
        assert (status, framing.state[Field.GROUPS]) == (Status.NO_DATA, 1)
        assert decode_gtid(decode_event_header(gtid_event), gtid_event)[0].seq_no == 7


def frame_all(kernels, pages, chunks_max):
    """The packets of pages, each call where the last has ended; and how many calls that took."""
    framing = make_framing(chunks_max=chunks_max)
    state = framing.state
    packets, calls, page = b"", 0, 0
    while True:
        offset, state[Field.PAGE], state[Field.OUT] = int(state[Field.OFFSET]), 0, 0
        status = kernels.frame_table(pages[page * PAGE_SIZE :], len(pages) // PAGE_SIZE - page, framing)
        packets += framing.out[: state[Field.OUT]].tobytes()
        calls += 1
        if not state[Field.PAGE] and state[Field.OFFSET] == offset:
            return packets, calls, (page, offset, status)
        page += int(state[Field.PAGE])


def test_a_block_of_more_chunks_than_there_is_room_for_is_framed_in_parts(kernels):
    disk = SimulatedDisk()
    random_log(8, disk, groups=60).close()
    pages = np.frombuffer(bytearray(disk.files()["binlog-000000.ibb"][PAGE_SIZE:]), dtype=np.uint8)
    packets, calls, end = frame_all(kernels, pages, 1 << 15)
    assert packets
    in_parts, more_calls, same_end = frame_all(kernels, pages, 8)
    assert (in_parts, same_end) == (packets, end)
    assert more_calls > calls
