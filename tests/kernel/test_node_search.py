"""Nodes of out-of-band streams: a kernel finds those that the reference finds, and leaves to it what is odd."""

import random

import pytest

from ibbmaster.errors import IbbMasterError
from ibbmaster.logs.log.directory import BinlogDirectory
from ibbmaster.logs.log.event_groups import StoredGroup
from ibbmaster.logs.log.out_of_band import OutOfBandReader
from ibbmaster.logs.store.writer import BinlogWriter
from ibbmaster.primary.streaming.large_group import NODES_AHEAD, NODES_AT_FIRST, LargeGroup, quick_nodes
from ibbmaster.storage.codec import compressed_int
from ibbmaster.storage.disk.local import RealDisk
from ibbmaster.storage.ibb.chunk import CHUNK_HEADER_SIZE, LAST, RecordType
from ibbmaster.storage.ibb.file_name import format_file_name
from ibbmaster.storage.ibb.page import DATA_SIZE, PAGE_SIZE
from tests.built_logs import sealed_page
from tests.machinery.disk import MemoryDisk
from tests.machinery.events import XID_EVENT, make_event, new_group

NODE_BYTES = 3000
NODES_MAX = NODES_AT_FIRST + NODES_AHEAD + 5  # more than two calls find


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    """Groups of 1 node and more; one reaches over the end of a file."""
    disk = RealDisk(tmp_path_factory.mktemp("nodes"))
    sizes = {"spill_bytes": NODE_BYTES, "oob_piece_bytes": NODE_BYTES}
    with BinlogWriter(disk, max_file_bytes=4 << 20, state_interval_bytes=1 << 18, **sizes) as writer:
        for seq_no, count in enumerate((1, 2, 3, 7, 8, 9, 31, 33, NODES_AT_FIRST, NODES_MAX, 50, 200), 1):
            writer.write_group(*new_group(seq_no, *[make_event(23, 1, bytes(NODE_BYTES - 19))] * count, XID_EVENT))
    return disk


def groups_of(disk):
    engine = BinlogDirectory(disk)
    groups = engine.groups(engine.start_of_file())
    while (group := groups.next_group()) is not None:
        if isinstance(group, StoredGroup):
            yield group


def by_reference(disk, group):
    nodes = (node for stream in group.streams for node in OutOfBandReader(disk).nodes(stream))
    return [(*node.position, node.header_size) for node in nodes]


def test_the_nodes_are_those_of_the_reference_in_the_same_order(kernels, log):
    found_all = found_some = 0
    for group in groups_of(log):
        expected = by_reference(log, group)
        quick = [tuple(row) for stream in group.streams for row in quick_nodes(log, stream, kernels)]
        assert quick == expected[: len(quick)]
        is_in_one_file = len({file_no for file_no, _, _ in expected}) == 1
        assert (len(quick) == len(expected)) == is_in_one_file
        found_all += is_in_one_file
        found_some += not is_in_one_file
        assert [tuple(row) for row in all_nodes(log, group, kernels)] == expected
    assert found_all > 10
    assert found_some


@pytest.mark.parametrize("state_interval_bytes", [PAGE_SIZE, 1 << 20], ids=["behind a state", "where a page begins"])
def test_a_header_may_go_on_in_the_next_page(kernels, tmp_path, state_interval_bytes):
    disk, node_bytes = RealDisk(tmp_path), 101
    sizes = {"spill_bytes": node_bytes, "oob_piece_bytes": node_bytes, "state_interval_bytes": state_interval_bytes}
    with BinlogWriter(disk, max_file_bytes=4 << 20, **sizes) as writer:
        writer.write_group(*new_group(1, *[make_event(23, 1, bytes(node_bytes - 19))] * 20_000, XID_EVENT))
    (group,) = groups_of(disk)
    expected = by_reference(disk, group)
    ends = [offset % PAGE_SIZE + CHUNK_HEADER_SIZE + size for _, offset, size in expected]
    cut = [offset // PAGE_SIZE + 1 for (_, offset, _), end in zip(expected, ends, strict=True) if end > DATA_SIZE]
    kinds = [disk.read("binlog-000000.ibb", page_no * PAGE_SIZE, 1)[0] & ~LAST for page_no in cut]
    states = [kind == RecordType.GTID_STATE for kind in kinds]
    assert len(cut) > 5
    assert all(states) if state_interval_bytes == PAGE_SIZE else not any(states)
    assert [tuple(row) for stream in group.streams for row in quick_nodes(disk, stream, kernels)] == expected


def test_a_disk_without_descriptors_is_left_to_the_reference(kernels, log):
    disk = MemoryDisk({name: log.read(name, 0, log.size(name)) for name in log.list() if name.endswith(".ibb")})
    for group in groups_of(disk):
        assert not [row for stream in group.streams for row in quick_nodes(disk, stream, kernels)]
        assert [tuple(row) for row in all_nodes(disk, group, kernels)] == by_reference(disk, group)


def test_a_header_that_says_something_else_is_judged_by_the_reference(kernels, log, memory_path):
    rng = random.Random(random.randrange(2**32))
    groups = [group for group in groups_of(log) if 3 <= len(by_reference(log, group)) <= 40]
    refused = 0
    for attempt in range(150):
        group = rng.choice(groups)
        file_no, offset, header_size = rng.choice(by_reference(log, group))
        name = format_file_name(file_no)
        data = bytearray(log.read(name, 0, log.size(name)))
        at = offset + rng.randrange(CHUNK_HEADER_SIZE + header_size)
        data[at] = rng.choice([data[at] ^ 1 << rng.randrange(8), rng.randrange(256), compressed_int.TAG_NINE_BYTES])
        first = at // PAGE_SIZE * PAGE_SIZE
        if rng.random() < 0.9:  # else the checksum is wrong, too
            data[first : first + PAGE_SIZE] = sealed_page(data[first : first + PAGE_SIZE])
        disk = RealDisk(memory_path / str(attempt))
        disk.directory.mkdir()
        for other in log.list():
            if other.endswith(".ibb"):
                (disk.directory / other).write_bytes(data if other == name else log.read(other, 0, log.size(other)))
        expected, problem = outcome(lambda disk=disk, group=group: by_reference(disk, group))
        quick = [tuple(row) for stream in group.streams for row in quick_nodes(disk, stream, kernels)]
        found, same_problem = outcome(lambda disk=disk, group=group: all_nodes(disk, group, kernels))
        assert (found if found is None else [tuple(row) for row in found], same_problem) == (expected, problem)
        assert problem is None or len(quick) < len(by_reference(log, group))
        refused += problem is not None
        for path in disk.directory.iterdir():
            path.unlink()
    assert refused > 50


def all_nodes(disk, group, kernels):
    """As a dump asks for them."""
    large = LargeGroup(disk, group, kernels)
    for number in range(1, sum(stream.node_count for stream in group.streams) + 2):
        large.nodes_from(number)
    return large.nodes_from(1)


def outcome(work):
    """What came out, and the error."""
    try:
        return work(), None
    except IbbMasterError as error:
        return None, str(error)
