import pytest

from ibbmaster.kernel import loading
from ibbmaster.logs.log import page_checks
from ibbmaster.logs.log import verify as verifying
from ibbmaster.logs.log.fault import Totals
from ibbmaster.logs.log.out_of_band import OutOfBandReader
from ibbmaster.logs.log.page_checks import PassedNodes, SplitState
from ibbmaster.logs.log.verify import verify
from ibbmaster.position import LogPosition
from ibbmaster.storage.ibb.oob import OobForest, OobNode
from ibbmaster.storage.ibb.page import PAGE_SIZE, seal_page


def cut(data, sizes):
    for size in sizes:
        yield data[:size]
        data = data[size:]
    yield data


@pytest.fixture
def large_log(new_log, event):
    """Two large groups whose nodes come in turn, one of which was begun anew, and a small one."""
    log = new_log(size_pages=32, interval_pages=4)
    log.commit("0-1-1", event(100))
    first, second = OobForest(), OobForest()
    events = [event(size) for size in (20_000, 300, 25, 40_000, 19, 9_000)]
    data, other = b"".join(events), b"".join(events[::-1])
    pieces = list(cut(data, [19_990, 25, 7, 8_000, 3, 30_000]))
    others = list(cut(other, [100, 9_000, 33_000, 1]))
    for number, piece in enumerate(pieces):
        log.out_of_band(first, [piece])
        if number == 2:
            log.out_of_band(first.copy(), [b"what a savepoint has undone"])
        if number < len(others):
            log.out_of_band(second, [others[number]])
    log.out_of_band(second, others[len(pieces) :])
    log.commit("0-1-2", forest=first, oob=data)
    log.commit("0-1-3", event(50))
    log.commit("0-1-4", forest=second, oob=other)
    log.commit("0-1-5", event(16_370))
    return log


def found_in(disk, monkeypatch, *, by_kernels):
    monkeypatch.setattr(verifying, "kernels", loading.load if by_kernels else lambda: None)
    totals = Totals()
    return [str(fault) for fault in verify(disk, totals)], totals


def test_no_node_of_a_sound_log_is_read_again(large_log, monkeypatch):
    expected = found_in(large_log.disk, monkeypatch, by_kernels=False)
    assert expected[0] == []

    def read(*arguments):
        raise AssertionError("a node was read again")

    monkeypatch.setattr(OutOfBandReader, "data", read)
    assert found_in(large_log.disk, monkeypatch, by_kernels=True) == expected


def test_each_damage_of_what_nodes_and_commit_records_say_is_found_as_ever(large_log, monkeypatch):
    name = "binlog-000000.ibb"
    sound, faulty = bytes(large_log.disk.files[name]), 0
    for page_no in range(1, len(sound) // PAGE_SIZE):
        start = page_no * PAGE_SIZE
        begins = {0, 3, 4, 7, 9, 12, 14, 20, 24, 28, 40, 16_340, 16_360, 16_375}
        for record in (b"\x42", b"\x02", b"\x41", b"\xc2"):  # of chunks that begin or end records
            at = sound.find(record, start, start + PAGE_SIZE)
            while at >= 0 and len(begins) < 60:
                begins |= {at - start + more for more in (0, 1, 3, 4, 5, 6, 8, 10, 22, 30)}
                at = sound.find(record, at + 4000, start + PAGE_SIZE)
        for at in sorted(begins):
            if at >= PAGE_SIZE - 4:
                continue
            page = bytearray(sound[start : start + PAGE_SIZE])
            if not any(page):
                break
            page[at] ^= 1 << at % 5
            seal_page(page)
            large_log.disk.files[name][start : start + PAGE_SIZE] = page
            found = found_in(large_log.disk, monkeypatch, by_kernels=True)
            assert found == found_in(large_log.disk, monkeypatch, by_kernels=False), (page_no, at)
            faulty += bool(found[0])
            large_log.disk.files[name][:] = sound
    assert faulty > 50


NODES = {  # of a forest, what is open behind each of its nodes
    "more than are held": [SplitState()] * 3,
    "inside an event": [SplitState(left=1)],
    "inside the head of an event": [SplitState(head=b"x")],
    "what nobody knows": [None],
}


@pytest.mark.parametrize("ends", NODES.values(), ids=NODES)
def test_a_forest_has_not_passed_with(monkeypatch, ends):
    monkeypatch.setattr(page_checks, "NODES_MAX", 2)
    passed, forest = PassedNodes(), OobForest()
    for number, end in enumerate(ends):
        ref = LogPosition.on_page(0, 2 + number)
        passed.take(ref, forest.next_node(), lambda begin, end=end: end)
        forest.add(ref)
    assert not passed.are_whole_events([forest.stream()])


def test_a_node_that_names_another_than_the_one_before_has_not_passed():
    passed, forest = PassedNodes(), OobForest()
    first, third = LogPosition.on_page(0, 2), LogPosition.on_page(0, 3)
    passed.take(first, OobNode(node_index=0, left=None, right=None), lambda begin: SplitState())
    passed.take(third, OobNode(node_index=2, left=None, right=first), lambda begin: SplitState())
    forest.add(first)
    forest.next_node()
    forest.add(third)
    assert not passed.are_whole_events([forest.stream()])
