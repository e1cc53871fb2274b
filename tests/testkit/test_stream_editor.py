import random
from functools import partial
from itertools import repeat

import pytest

from ibbmaster.gtid import Gtid
from ibbmaster.replication.event.gtid_event import GtidEvent, GtidFlag, encode_gtid_event
from ibbmaster.replication.event.header import encode_event
from ibbmaster.replication.event.types import EventType
from ibbmaster.replication.wire.packet import PACKET_PAYLOAD_MAX, frame_packets
from ibbmaster.testkit import stream_editor
from ibbmaster.testkit.fault import FaultPlan, PlannedFault
from ibbmaster.testkit.stream_editor import StreamEditor
from tests.case_table import data_beside
from tests.tap import framed, tap

SEMI_SYNC = b"\0\xef\0"


def edit(faults, data, sizes, *, seed=0):
    """What comes out, bytes in one piece, and the faults in between by their words."""
    plan = FaultPlan(seed)
    for line in faults:
        plan.add_fault(PlannedFault.parse(line))
    editor = StreamEditor(plan, connection_id=1, number=1, replica=7)
    output, start = [], 0
    while start < len(data):
        size = next(sizes)
        items = editor.edit(data[start : start + size])
        output += [item if isinstance(item, bytes) else f"<{item}>".encode() for item in items]
        start += size
    return b"".join(output), plan


def group(seq_no, *sizes):
    head = GtidEvent(gtid=Gtid(domain_id=0, server_id=1, seq_no=seq_no), flags=GtidFlag.TRANSACTIONAL)
    body = [encode_event(event_type=EventType.WRITE_ROWS_V1, body=bytes(size), server_id=1) for size in sizes]
    end = encode_event(event_type=EventType.XID, body=bytes(8), server_id=1)
    return [b"\0" + event for event in (encode_gtid_event(head), *body, end)]


PLANS = data_beside(__file__)["plans"]


@pytest.mark.parametrize("faults", PLANS, ids=lambda faults: ", ".join(faults) or "none")
async def test_the_same_bytes_come_out_however_they_go_in(faults, stream_seeds):
    data = (await tap(None, "classic")).data
    whole, plan = edit(faults, data, repeat(len(data)))
    chosen = (iter(partial(random.Random(seed).choice, (1, 2, 3, 4, 5, 20, 100, 5000)), 0) for seed in stream_seeds(2))
    for sizes in (repeat(1), repeat(4096), *chosen):
        found, again = edit(faults, data, sizes)
        assert found == whole
        assert again.done == plan.done
    assert (whole == data) is not bool(faults)


def test_seeds_decide_over_garbage():
    data = framed(group(1, 5))
    faults = ["garbage after gtid; count=100"]
    outputs = {seed: edit(faults, data, repeat(9), seed=seed)[0] for seed in (1, 2)}
    assert outputs[1] == edit(faults, data, repeat(50), seed=1)[0] != outputs[2]


@pytest.mark.parametrize("size", [PACKET_PAYLOAD_MAX - 20, PACKET_PAYLOAD_MAX, 2 * PACKET_PAYLOAD_MAX - 20, 40_000_000])
def test_an_event_of_several_packets_is_numbered_and_cut_as_any_other(size):
    payloads = group(1, 5, size - 19, 6)
    data, sequence = b"", 1
    for payload in payloads:
        frame, sequence = frame_packets(payload, sequence)
        data += frame
    assert edit([], data, repeat(100_000))[0] == data
    begin = len(framed(payloads[:2]))
    for byte in (0, 1_000_000, size - 1):
        found, _ = edit([f"cut inside rows 2 at byte {byte}"], data, repeat(1_000_000))
        headers = 1 + (byte + 1) // PACKET_PAYLOAD_MAX
        assert found == data[: begin + 4 * headers + 1 + byte] + f"<cut inside rows 2 at byte {byte}>".encode()
    dropped, _ = edit(["drop at rows 2"], data, repeat(1_000_000))
    assert dropped == framed([*payloads[:2], *payloads[3:]])


def test_an_event_behind_a_semi_sync_header_is_counted_from_its_own_begin():
    payloads = [SEMI_SYNC + payload[1:] for payload in group(1, 5) + group(2, 6)]
    assert edit([], framed(payloads), repeat(3))[0] == framed(payloads)
    cut, _ = edit(["cut inside rows at byte 1"], framed(payloads), repeat(3))
    assert cut == framed(payloads[:2])[: len(framed(payloads[:1])) + 4 + 3 + 1] + b"<cut inside rows at byte 1>"
    inserted, _ = edit(["insert after gtid; event=stop"], framed(payloads), repeat(7))
    assert inserted[len(framed(payloads[:1])) + 4 :].startswith(SEMI_SYNC)


@pytest.mark.parametrize("action", ["swap", "repeat"])
def test_a_group_too_large_to_be_held_is_sent_as_it_is_and_that_is_said(action, monkeypatch):
    monkeypatch.setattr(stream_editor, "HELD_MAX", 1000)
    data = framed(group(1, 5) + group(2, 600, 600) + group(3, 5))
    found, plan = edit([f"{action} at gtid 2"], data, repeat(64))
    assert found == data
    assert [record.problem for record in plan.done] == ["", "the group has more than 1000 bytes, and was sent as it is"]


def test_what_waits_for_a_byte_that_is_not_there_waits_on_and_memory_is_bounded():
    data = framed(group(1, 5) + group(2, 50))
    found, plan = edit(["cut inside rows at byte 40"], data, repeat(9))
    assert found == data[: len(framed(group(1, 5) + group(2, 50)[:1])) + 5 + 40] + b"<cut inside rows at byte 40>"
    assert [record.gtid for record in plan.done] == ["0-1-2"]
    data = framed([packet for number in range(1, 4) for packet in group(number, 100_000)])
    _, plan = edit(["alter at rows; times=always"], data, repeat(1 << 20))
    assert [len(record.event) for record in plan.done] == [4096] * 3
