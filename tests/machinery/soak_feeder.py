"""A process that writes a log and serves it: `python -m tests.machinery.soak_feeder DIR SEED`.

Prints `port N`. A line on standard input ends the writing: `end POSITION` follows. It serves
until standard input ends. What each group holds follows from the seed and its GTID: statements
that real replicas can run, each of which leaves a row whose number says in which order it was applied.
"""

import random
import sys
import threading
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import ibbmaster
from ibbmaster.api.stores import WritingOptions
from ibbmaster.gtid import Gtid
from ibbmaster.replication.event.control import encode_xid
from ibbmaster.replication.event.gtid_event import GtidEvent, GtidFlag, encode_gtid_event
from ibbmaster.replication.event.query import Query, encode_query
from tests.machinery.events import gtid_of

USER, PASSWORD = "repl", "soak"
DOMAIN_COUNT = 5
SERVER_ID = 1
TIMESTAMP = 1_700_000_000  # of every event
OPENING_COUNT = 2  # the first groups of a domain make its database and table
TRANSACTIONAL = GtidFlag.TRANSACTIONAL | GtidFlag.ALLOW_PARALLEL
STANDALONE = GtidFlag.STANDALONE | GtidFlag.DDL
SMALL, MIDDLE, LARGE = (10, 1000), (2000, 50_000), (300_000, 450_000)  # bytes of random content; twice as many of text
PACES_S = (0.0, 0.02, 0.05, 0.15)  # between two steps: bursts, a steady load, and time for heartbeats
STEPS_PER_PACE = 30
PIECE_BYTES = 90_000  # of a group that is written while others are
OPTIONS = WritingOptions(
    is_sparse=False,
    max_file_bytes=4 << 20,
    state_interval_bytes=64 << 10,
    oob_piece_bytes=64 << 10,
    spill_bytes=20_000,
    redo_bytes=16 << 20,
    max_total_bytes=1 << 30,
)


def gtid_event_of(gtid: Gtid) -> bytes:
    flags = STANDALONE if gtid.seq_no <= OPENING_COUNT else TRANSACTIONAL
    return encode_gtid_event(GtidEvent(gtid=gtid, flags=flags), timestamp=TIMESTAMP)


def body_of(seed: int, gtid: Gtid, *, has_xid: bool = True) -> list[bytes]:
    """The events behind the GTID event; without `has_xid` the last is a QUERY, as behind XA COMMIT."""
    table = f"soak{gtid.domain_id}.log"
    if gtid.seq_no == 1:
        return [_query(f"CREATE DATABASE soak{gtid.domain_id}")]
    if gtid.seq_no == OPENING_COUNT:
        columns = "id INT PRIMARY KEY, seq_no INT NOT NULL, part INT NOT NULL, size INT NOT NULL, sum BIGINT NOT NULL"
        return [_query(f"CREATE TABLE {table} ({columns}) ENGINE=InnoDB")]
    events = [
        _query(
            f"INSERT INTO {table} SELECT (SELECT COALESCE(MAX(id), 0) + 1 FROM {table}), {gtid.seq_no}, {part}, "
            f"LENGTH(x.text), CRC32(x.text) FROM (SELECT '{text}' AS text) AS x"
        )
        for part, text in enumerate(_texts(seed, gtid))
    ]
    return [*events, encode_xid(gtid.seq_no, server_id=SERVER_ID, timestamp=TIMESTAMP) if has_xid else _query("COMMIT")]


def rows_of(seed: int, domain_id: int, last_seq_no: int) -> Iterator[tuple[int, int, int, int, int]]:
    row_id = 0
    for seq_no in range(OPENING_COUNT + 1, last_seq_no + 1):
        for part, text in enumerate(_texts(seed, gtid_of(seq_no, domain_id))):
            row_id += 1
            yield row_id, seq_no, part, len(text), zlib.crc32(text.encode())


def _texts(seed: int, gtid: Gtid) -> Iterator[str]:
    rng = random.Random(f"{seed} {gtid}")
    kind = rng.random()
    least, most = SMALL if kind < 0.45 else MIDDLE if kind < 0.7 else LARGE
    count = rng.choice((1, 1, 3, 12))
    for _ in range(count):
        yield rng.randbytes(rng.randint(least, most) // count).hex()


def _query(text: str) -> bytes:
    query = Query(thread_id=1, seconds=0, error_code=0, status=b"", database=b"", text=text.encode())
    return encode_query(query, server_id=SERVER_ID, timestamp=TIMESTAMP)


@dataclass(slots=True, kw_only=True)
class _OpenGroup:
    """A group that is written while others are; nothing else is written in its domain."""

    gtid: Gtid
    writer: ibbmaster.OpenGroup
    rest: bytes
    xid: str | None


class Feeder:
    def __init__(self, log: ibbmaster.WritableLog, seed: int) -> None:
        self._log = log
        self._seed = seed
        self._rng = random.Random(seed)
        self._seq_nos = [0] * DOMAIN_COUNT
        self._open: dict[int, _OpenGroup] = {}

    def step(self) -> None:
        domain_id = self._rng.randrange(DOMAIN_COUNT)
        if domain_id in self._open:
            self._go_on(domain_id)
            return
        self._seq_nos[domain_id] += 1
        gtid = gtid_of(self._seq_nos[domain_id], domain_id, SERVER_ID)
        match self._rng.randrange(12) if gtid.seq_no > OPENING_COUNT else -1:
            case 0 | 1 | 2:
                self._begin(gtid, xid=None)
            case 3:
                self._begin(gtid, xid=str(gtid))
            case 4:
                self._write_with_savepoint(gtid)
            case 5 if self._rng.random() < 0.1:
                self._write(gtid)
                self._log.flush()
            case _:
                self._write(gtid)

    def finish(self) -> None:
        while self._open:
            self._go_on(next(iter(self._open)))

    def _write(self, gtid: Gtid) -> None:
        self._log.append(gtid, [gtid_event_of(gtid), *body_of(self._seed, gtid)])

    def _write_with_savepoint(self, gtid: Gtid) -> None:
        body = b"".join(body_of(self._seed, gtid))
        group = self._log.begin()
        group.write(body[:100])
        group.savepoint("s")
        group.write(bytes(self._rng.choice((100, 300_000))))
        group.roll_back_to("s")
        group.write(body[100:])
        group.commit(gtid, gtid_event_of(gtid))

    def _begin(self, gtid: Gtid, *, xid: str | None) -> None:
        body = b"".join(body_of(self._seed, gtid, has_xid=xid is None))
        self._open[gtid.domain_id] = _OpenGroup(gtid=gtid, writer=self._log.begin(), rest=body, xid=xid)

    def _go_on(self, domain_id: int) -> None:
        group = self._open[domain_id]
        if group.rest:
            piece, group.rest = group.rest[:PIECE_BYTES], group.rest[PIECE_BYTES:]
            group.writer.write(piece)
            if not group.rest and group.xid is not None:
                group.writer.prepare(group.xid)
            return
        del self._open[domain_id]
        if group.xid is None:
            group.writer.commit(group.gtid, gtid_event_of(group.gtid))
        else:
            self._log.xa_commit(group.xid, group.gtid, gtid_event_of(group.gtid))


def feed(log: ibbmaster.WritableLog, seed: int, ended: threading.Event) -> None:
    feeder = Feeder(log, seed)
    rng = random.Random(f"{seed} pace")
    while not ended.is_set():
        pace_s = rng.choice(PACES_S)
        for _ in range(STEPS_PER_PACE):
            feeder.step()
            if ended.wait(pace_s):
                break
    feeder.finish()
    log.sync()
    print("end", log.position, flush=True)


def main() -> None:
    directory, seed = Path(sys.argv[1]), int(sys.argv[2])
    ended = threading.Event()
    with (
        ibbmaster.create(directory, exist_ok=True, **OPTIONS) as log,
        ibbmaster.serve(log, user=USER, password=PASSWORD, tls="off") as primary,
    ):
        print("port", primary.port, flush=True)
        writer = threading.Thread(target=feed, args=(log, seed, ended), daemon=True)
        writer.start()
        sys.stdin.readline()
        ended.set()
        sys.stdin.read()
        writer.join()


if __name__ == "__main__":
    main()
