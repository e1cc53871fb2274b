from ibbmaster.logs.log.cursor import ChunkCursor
from ibbmaster.logs.log.pages import PageReader
from ibbmaster.storage.ibb.chunk import RecordType
from tests.machinery.disk import MemoryDisk
from tests.machinery.random_log import random_log


def made(seed):
    disk = MemoryDisk()
    with random_log(seed, disk) as store:
        store.flush()
    return disk


def test_a_seed_gives_the_same_log_and_another_seed_another():
    assert made(1).files == made(1).files != made(2).files


def test_there_are_large_and_small_groups_states_and_several_files():
    disk = made(3)
    cursor = ChunkCursor(PageReader(disk), file_no=0, page_no=1)
    types, is_cut = set(), False
    while (chunk := cursor.next_chunk()) is not None:
        types.add(chunk.record_type)
        is_cut |= not chunk.is_last

    assert types >= {RecordType.COMMIT, RecordType.GTID_STATE, RecordType.OOB_DATA}
    assert is_cut
    assert len([name for name in disk.list() if name.endswith(".ibb")]) > 3
