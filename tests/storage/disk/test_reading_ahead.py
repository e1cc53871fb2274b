import gc
import random
import weakref
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from ibbmaster.storage.disk import reading_ahead
from ibbmaster.storage.disk.page_memory import page_map
from ibbmaster.storage.disk.reading_ahead import PieceReader


@pytest.fixture(params=[0, 1, 3], ids=["no helper", "a helper", "three helpers"])
def helper(request):
    if not request.param:
        yield None
        return
    with ThreadPoolExecutor(request.param) as found:
        yield found


def reading_of(data, reads=None):
    def read(offset, target):
        found = data[offset : offset + len(target)]
        target[: len(found)] = found
        if reads is not None:
            reads.append(offset)
        return len(found), offset

    return read


def test_each_place_gives_the_bytes_that_follow_it_and_says_which_were_given_before(helper):
    rng = random.Random(random.randrange(2**32))
    data = rng.randbytes(5000)
    with closing(PieceReader(reading_of(data), block_bytes=700, kept_max=300, helper=helper)) as blocks:
        offset = end = 0
        for _ in range(200):
            found = blocks.at(offset)
            is_near = end - 300 <= offset <= end and found.kept
            assert found.kept == (end - offset if is_near else 0)
            assert bytes(found.data) == data[offset : offset + found.kept + 700]
            assert found.note == offset + found.kept
            end = offset + len(found.data)
            offset = max(0, end - rng.choice([0, 0, 1, 299, 300])) if rng.random() < 0.9 else rng.randrange(5000)


def test_what_cannot_be_read_is_an_error_only_where_it_is_wanted(helper):
    def read(offset, target):
        if offset >= 20:
            raise OSError("no more")
        return 10, 0

    blocks = PieceReader(read, block_bytes=10, kept_max=5, helper=helper)
    assert len(blocks.at(0).data) == len(blocks.at(10).data) == 10
    with pytest.raises(OSError, match="no more"):
        blocks.at(20)
    blocks.close()


def test_after_a_short_block_the_next_begins_where_that_ended(helper):
    data = bytearray(range(25))
    with closing(PieceReader(reading_of(data), block_bytes=10, kept_max=5, helper=helper)) as blocks:
        assert [bytes(blocks.at(offset).data)[0] for offset in (0, 10, 20)] == [0, 10, 20]
        assert len(blocks.at(25).data) == 0
        data += bytes(range(25, 40))
        assert bytes(blocks.at(25).data) == bytes(range(25, 35))
        assert bytes(blocks.at(33).data) == bytes(range(33, 40))


def test_who_is_closed_keeps_no_memory_though_it_refers_to_itself(helper, monkeypatch):
    made = []

    def noted(size):
        memory = page_map(size)
        made.append(weakref.ref(memory))
        return memoryview(memory)

    class Owner:
        def __init__(self):
            self.blocks = PieceReader(self.read, block_bytes=700, kept_max=300, helper=helper)

        def read(self, offset, target):
            return reading_of(bytes(5000))(offset, target)

    monkeypatch.setattr(reading_ahead, "page_memory", noted)
    gc.disable()
    try:
        owner = Owner()
        for offset in (0, 700, 100, 1400):
            owner.blocks.at(offset)
        owner.blocks.close()
        del owner
        if helper is not None:
            helper.shutdown()  # a thread lets go of its last work a moment after that is done
        assert made
        assert all(memory() is None for memory in made)
    finally:
        gc.enable()
