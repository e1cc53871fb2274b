"""Logs with everything in them that a reader can meet, from a seed."""

import random
from collections.abc import Iterator

from ibbmaster.gtid import Gtid
from ibbmaster.logs.log.group_writer import GroupWriter
from ibbmaster.logs.store.binlog_store import BinlogStore
from ibbmaster.logs.store.store_options import StoreOptions
from ibbmaster.storage.disk.interface import Disk
from ibbmaster.storage.ibb.page import PAGE_SIZE
from tests.machinery.events import make_event, make_gtid_event

SIZES = (0, 13, 100, 300, 5000, PAGE_SIZE, 40_000, 90_000, 300_000)
OPTIONS = StoreOptions(
    max_file_bytes=24 * PAGE_SIZE,
    state_interval_bytes=4 * PAGE_SIZE,
    oob_piece_bytes=40_000,
    spill_bytes=60_000,
    redo_bytes=4 << 20,
)


def random_log(seed: int, disk: Disk, *, groups: int = 150) -> BinlogStore:
    """A log of small and large groups in many domains, parts out of band between
    others, at the ends of files and around state records."""
    rng = random.Random(seed)
    store = BinlogStore(disk, OPTIONS)
    seq_no = 0

    def next_gtid() -> Gtid:
        nonlocal seq_no
        seq_no += 1
        return Gtid(domain_id=rng.randrange(3), server_id=rng.randrange(1, 4), seq_no=seq_no)

    def events(count: int) -> Iterator[bytes]:
        for _ in range(count):
            kind = rng.choice([160, 19, 23, 16])
            flags = 0x8000 if rng.random() < 0.1 else 0
            event = bytearray(make_event(kind, 1, rng.randbytes(rng.choice(SIZES[:7]))))
            event[17:19] = flags.to_bytes(2, "little")
            yield bytes(event)

    open_groups: list[GroupWriter] = []
    for _ in range(groups):
        match rng.randrange(10):
            case 0:
                open_groups.append(store.open_group())
            case 1 | 2 if open_groups:
                group = rng.choice(open_groups)
                for event in events(rng.randrange(1, 12)):
                    group.write(event)
                if rng.random() < 0.5:
                    open_groups.remove(group)
                    number = next_gtid()
                    if rng.random() < 0.2:
                        group.abandon()
                    else:
                        group.write(make_event(16, 1, bytes(8)))
                        group.commit(number, make_gtid_event(number))
            case 3:
                number = next_gtid()
                store.write_direct(
                    number, make_gtid_event(number), [make_event(23, 1, rng.randbytes(rng.choice(SIZES)))]
                )
            case 4 if rng.random() < 0.1:
                store.flush()
            case _:
                number = next_gtid()
                store.write_direct(number, make_gtid_event(number), events(rng.randrange(1, 5)))
    for group in open_groups:
        group.abandon()
    return store
