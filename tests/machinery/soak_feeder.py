"""A process that writes a log and serves it: `python -m tests.machinery.soak_feeder DIR SEED`.

Prints `port N`, and `fed GROUPS BYTES` now and then. A line on standard input ends the
writing: `end POSITION` follows. It serves until standard input ends.
"""

import random
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import ibbmaster
from ibbmaster.api.writing import WritingOptions
from tests.machinery.soak_log import DOMAIN_COUNT, body_of, gtid_event_of, gtid_of

USER, PASSWORD = "repl", "soak"
REPORT_PERIOD_S = 0.5
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


@dataclass(slots=True, kw_only=True)
class _OpenGroup:
    """A group that is written while others are; nothing else is written in its domain."""

    gtid: ibbmaster.Gtid
    writer: ibbmaster.OpenGroup
    rest: bytes
    xid: str | None


class Feeder:
    """Writes group after group, in all the ways there are."""

    def __init__(self, log: ibbmaster.WritableLog, seed: int) -> None:
        self._log = log
        self._seed = seed
        self._rng = random.Random(seed)
        self._seq_nos = [0] * DOMAIN_COUNT
        self._open: dict[int, _OpenGroup] = {}
        self.group_count = 0
        self.byte_count = 0

    def step(self) -> None:
        """One group, or a piece of one."""
        domain_id = self._rng.randrange(DOMAIN_COUNT)
        if domain_id in self._open:
            self._go_on(domain_id)
            return
        self._seq_nos[domain_id] += 1
        gtid = gtid_of(domain_id, self._seq_nos[domain_id])
        self.group_count += 1
        match self._rng.randrange(12) if gtid.seq_no > 2 else -1:
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
        """End what is open."""
        while self._open:
            self._go_on(next(iter(self._open)))

    def _write(self, gtid: ibbmaster.Gtid) -> None:
        events = body_of(self._seed, gtid)
        self.byte_count += sum(map(len, events))
        self._log.append(gtid, [gtid_event_of(gtid), *events])

    def _write_with_savepoint(self, gtid: ibbmaster.Gtid) -> None:
        body = b"".join(body_of(self._seed, gtid))
        group = self._log.begin()
        group.write(body[:100])
        group.savepoint("s")
        group.write(bytes(self._rng.choice((100, 300_000))))
        group.roll_back_to("s")
        group.write(body[100:])
        self.byte_count += len(body)
        group.commit(gtid, gtid_event_of(gtid))

    def _begin(self, gtid: ibbmaster.Gtid, *, xid: str | None) -> None:
        body = b"".join(body_of(self._seed, gtid, has_xid=xid is None))
        self.byte_count += len(body)
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
    """Write until `ended` is set; then say where that is."""
    feeder = Feeder(log, seed)
    rng = random.Random(f"{seed} pace")
    report_due = time.monotonic()
    while not ended.is_set():
        pace_s = rng.choice(PACES_S)
        for _ in range(STEPS_PER_PACE):
            feeder.step()
            ended.wait(pace_s)
            if ended.is_set():
                break
            if time.monotonic() >= report_due:
                report_due = time.monotonic() + REPORT_PERIOD_S
                print("fed", feeder.group_count, feeder.byte_count, flush=True)
    feeder.finish()
    log.sync()
    print("fed", feeder.group_count, feeder.byte_count, flush=True)
    print("end", log.position, flush=True)


def main() -> None:
    """Write, serve, and end as standard input says."""
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
