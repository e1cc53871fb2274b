"""A process that feeds a store and serves it, to be killed: `python -m ibbmaster.testing.feeder DIR SEED`.

Speaks on standard output: first `port N recovered STATE`, then `fed N` before and `ack N`
after each group, N being its sequence number. The groups' bodies follow from N, so that
whoever reads the log can tell that they are whole.
"""

from __future__ import annotations

import random
import struct
import sys
import threading
from pathlib import Path

from ibbmaster.codec.crc32c import crc32c
from ibbmaster.disk.local import RealDisk
from ibbmaster.gtid import Gtid
from ibbmaster.ibb.xa import Xid
from ibbmaster.store.background import Background
from ibbmaster.store.binlog_store import BinlogStore
from ibbmaster.store.store_options import Durability, StoreOptions
from ibbmaster.testing.crash import make_event, make_gtid_event

SIZES = (40, 300, 5000, 16_300, 90_000, 400_000)
PASSWORD = "feeder"
EVENT_HEADER_SIZE = 19


def body_of(seq_no: int) -> bytes:
    """The events behind the GTID event of a group; they carry the number and a checksum of themselves."""
    size = SIZES[seq_no * 7919 % 23 % len(SIZES)]
    filler = (struct.pack("<Q", seq_no) * (size // 8 + 1))[:size]
    return make_event(160, 1, struct.pack("<QI", seq_no, crc32c(filler)) + filler)


def is_whole(seq_no: int, body: bytes) -> bool:
    """Whether these are the events of that group."""
    return body == body_of(seq_no)


def feed(store: BinlogStore, chance: random.Random) -> None:
    """Feed for ever, one group after the other, in all the ways there are."""
    latest = store.binlog_state().latest(0)
    seq_no = 0 if latest is None else latest.seq_no
    for xid in store.xa_recover():
        store.xa_rollback(xid)
    while True:
        seq_no += 1
        gtid = Gtid(domain_id=0, server_id=1, seq_no=seq_no)
        event, body = make_gtid_event(gtid), body_of(seq_no)
        print("fed", seq_no, flush=True)
        match chance.randrange(12):
            case 0:
                group = store.open_group()
                group.write(body[:100])
                group.savepoint("s")
                group.write(bytes(50_000))
                group.roll_back_to("s")
                group.write(body[100:])
                group.commit(gtid, event)
            case 1:
                group = store.open_group()
                group.write(body)
                xid = Xid(format_id=1, gtrid=str(seq_no).encode(), bqual=b"")
                group.prepare(xid)
                store.xa_commit(xid, gtid, event)
            case 2:
                group = store.open_group()
                group.write(bytes(60_000))
                group.abandon()
                store.write_direct(gtid, event, [body])
            case 3 if not seq_no % 5:
                store.write_direct(gtid, event, [body])
                store.flush()
            case _:
                store.write_direct(gtid, event, [body])
        print("ack", seq_no, flush=True)


def main() -> None:
    """Open or recover the store, serve it, feed it."""
    import trio

    from ibbmaster.dump.profile import PROFILES
    from ibbmaster.server.options import PrimaryOptions
    from ibbmaster.server.primary import Primary
    from ibbmaster.wire.auth import make_account

    directory, seed = Path(sys.argv[1]), int(sys.argv[2])
    options = StoreOptions(
        durability=Durability.SYNC,
        max_file_bytes=1 << 20,
        state_interval_bytes=64 << 10,
        redo_bytes=4 << 20,
        spill_bytes=20_000,
        oob_piece_bytes=64 << 10,
    )
    store = BinlogStore(RealDisk(directory), options)
    account = make_account("repl", PASSWORD)
    primary = Primary(
        store,
        PrimaryOptions(host="127.0.0.1", port=0, account=account, certificate=None, profile=PROFILES["engine"]),
    )

    async def serve() -> None:
        async with trio.open_nursery() as nursery:
            port = await nursery.start(primary.serve)
            print("port", port, "recovered", store.binlog_state(), flush=True)
            threading.Thread(target=feed, args=(store, random.Random(seed)), daemon=True).start()

    with Background(store):
        trio.run(serve)


if __name__ == "__main__":
    main()
