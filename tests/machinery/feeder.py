"""A process that feeds a log and serves it, to be killed: `python -m tests.machinery.feeder DIR SEED`.

Speaks on standard output: first `port N recovered STATE`, then `fed N` before and `ack N` after each group, N being its
sequence number. The groups' bodies follow from N, so that a reader of the log can see that they are whole.
"""

import random
import struct
import sys
from pathlib import Path

import ibbmaster
from ibbmaster.storage.codec.crc32c import crc32c
from tests.machinery.events import make_event, make_gtid_event

SIZES = (40, 300, 5000, 16_300, 90_000, 400_000)
PASSWORD = "feeder"


def body_of(seq_no: int) -> bytes:
    size = SIZES[seq_no * 7919 % 23 % len(SIZES)]
    filler = (struct.pack("<Q", seq_no) * (size // 8 + 1))[:size]
    return make_event(160, 1, struct.pack("<QI", seq_no, crc32c(filler)) + filler)


def is_whole(seq_no: int, body: bytes) -> bool:
    return body == body_of(seq_no)


def feed(log: ibbmaster.WritableLog, rng: random.Random) -> None:
    latest = log.state.latest(0)
    seq_no = 0 if latest is None else latest.seq_no
    for xid in log.prepared:
        log.xa_rollback(xid)
    while True:
        seq_no += 1
        gtid = ibbmaster.Gtid(domain_id=0, server_id=1, seq_no=seq_no)
        event, body = make_gtid_event(gtid), body_of(seq_no)
        print("fed", seq_no, flush=True)
        match rng.randrange(12):
            case 0:
                with log.begin() as group:
                    group.write(body[:100])
                    group.savepoint("s")
                    group.write(bytes(50_000))
                    group.roll_back_to("s")
                    group.write(body[100:])
                    group.commit(gtid, event)
            case 1:
                with log.begin() as group:
                    group.write(body)
                    group.prepare(str(seq_no))
                log.xa_commit(str(seq_no), gtid, event)
            case 2:
                with log.begin() as group:
                    group.write(bytes(60_000))
                    group.roll_back()
                log.append(gtid, [event, body])
            case 3 if not seq_no % 5:
                log.append(gtid, [event, body])
                log.flush()
            case _:
                log.append(gtid, [event, body])
        print("ack", seq_no, flush=True)


def main() -> None:
    directory, seed = Path(sys.argv[1]), int(sys.argv[2])
    with (
        ibbmaster.create(
            directory,
            exist_ok=True,
            is_sparse=False,
            max_file_bytes=1 << 20,
            state_interval_bytes=64 << 10,
            redo_bytes=4 << 20,
            spill_bytes=20_000,
            oob_piece_bytes=64 << 10,
        ) as log,
        ibbmaster.serve(log, password=PASSWORD, tls="off") as primary,
    ):
        print("port", primary.port, "recovered", log.state, flush=True)
        feed(log, random.Random(seed))


if __name__ == "__main__":
    main()
