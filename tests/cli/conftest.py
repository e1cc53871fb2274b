"""Commands as a user calls them, and logs for them."""

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from ibbmaster.disk.local import RealDisk
from ibbmaster.gtid import Gtid
from ibbmaster.store.binlog_store import BinlogStore
from ibbmaster.store.store_options import StoreOptions
from tests.machinery.events import make_event, make_gtid_event


@pytest.fixture
def feed() -> Callable[..., None]:
    """Groups of domain 0; after a crash they are in the redo log and perhaps not in the files."""

    def feed(directory: Path, seq_nos: Iterable[int], size: int = 3000, *, crash: bool = False) -> None:
        directory.mkdir(exist_ok=True)
        disk = RealDisk(directory)
        store = BinlogStore(disk, StoreOptions(max_file_bytes=1 << 17, is_sparse=True))
        for seq_no in seq_nos:
            gtid = Gtid(domain_id=0, server_id=1, seq_no=seq_no)
            store.write_direct(gtid, make_gtid_event(gtid), [make_event(160, 1, bytes(size))])
        if crash:
            disk.close()
        else:
            store.close()

    return feed
