"""The groups of a soak: what each holds follows from a seed and its GTID.

So a reader can see whether one is whole. They are statements that real replicas can run:
each leaves a row whose number says in which order it was applied.
"""

import functools
import random
import zlib
from collections.abc import Iterator

from ibbmaster.event.control import encode_xid
from ibbmaster.event.gtid_event import GtidEvent, GtidFlag, encode_gtid_event
from ibbmaster.event.query import Query, encode_query
from ibbmaster.gtid import Gtid

DOMAIN_COUNT = 5
SERVER_ID = 1
TIMESTAMP = 1_700_000_000  # of every event
OPENING_COUNT = 2  # the first groups of a domain make its database and table
TRANSACTIONAL = GtidFlag.TRANSACTIONAL | GtidFlag.ALLOW_PARALLEL
STANDALONE = GtidFlag.STANDALONE | GtidFlag.DDL
SMALL, MIDDLE, LARGE = (10, 1000), (2000, 50_000), (300_000, 450_000)  # bytes of random content; twice as many of text


def gtid_of(domain_id: int, seq_no: int) -> Gtid:
    return Gtid(domain_id=domain_id, server_id=SERVER_ID, seq_no=seq_no)


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
    end = encode_xid(gtid.seq_no, server_id=SERVER_ID, timestamp=TIMESTAMP) if has_xid else _query("COMMIT")
    return [*events, end]


def is_whole(seed: int, gtid: Gtid, events: list[bytes]) -> bool:
    """Whether these are the events behind the GTID event, however the group was committed."""
    *content, end = _body(seed, gtid)
    return events[:-1] == content and events[-1] in (end, _query("COMMIT"))


@functools.lru_cache(maxsize=32)
def _body(seed: int, gtid: Gtid) -> list[bytes]:
    return body_of(seed, gtid)  # many readers want the same one


def rows_of(seed: int, domain_id: int, last_seq_no: int) -> Iterator[tuple[int, int, int, int, int]]:
    """The table of a domain as a replica has it that applied every group once, in order."""
    row_id = 0
    for seq_no in range(OPENING_COUNT + 1, last_seq_no + 1):
        for part, text in enumerate(_texts(seed, gtid_of(domain_id, seq_no))):
            row_id += 1
            yield row_id, seq_no, part, len(text), zlib.crc32(text.encode())


def _texts(seed: int, gtid: Gtid) -> Iterator[str]:
    """The content of a group, in one part or several."""
    rng = _rng(seed, gtid)
    kind = rng.random()
    least, most = SMALL if kind < 0.45 else MIDDLE if kind < 0.7 else LARGE
    count = rng.choice((1, 1, 3, 12))
    for _ in range(count):
        yield rng.randbytes(rng.randint(least, most) // count).hex()


def _rng(seed: int, gtid: Gtid) -> random.Random:
    return random.Random(f"{seed} {gtid}")


def _query(text: str) -> bytes:
    query = Query(thread_id=1, seconds=0, error_code=0, status=b"", database=b"", text=text.encode())
    return encode_query(query, server_id=SERVER_ID, timestamp=TIMESTAMP)
