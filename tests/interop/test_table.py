"""The clients of `benchmarks/` read what a replica reads, and the table judges what they measured."""

import contextlib
import itertools
import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from lanes.primary import IbbPrimary

from benchmarks.figures import FURTHER, ROWS, Figure, Target
from benchmarks.replica import Account, first_event_s, reconnect_s, waiting
from benchmarks.servers import Contender
from benchmarks.stream import one_run
from benchmarks.workloads import large_log, small_group
from ibbmaster.logs.store.writer import BinlogWriter
from ibbmaster.storage.disk.local import RealDisk

GROUPS = 50
ROW_BYTES = 40_000  # more than a record of TLS holds


@pytest.fixture
def writer(tmp_path) -> Iterator[BinlogWriter]:
    directory = tmp_path / "log"
    directory.mkdir()
    with BinlogWriter(RealDisk(directory), max_file_bytes=16 << 20, is_sparse=True) as writer:
        for seq_no in range(1, GROUPS + 1):
            writer.write_group(*small_group(seq_no, ROW_BYTES))
        writer.flush()
        yield writer


@pytest.fixture
def server(writer, tmp_path) -> Iterator[Contender]:
    with serving(tmp_path / "log") as contender:
        yield contender


@contextlib.contextmanager
def serving(directory: Path) -> Iterator[Contender]:
    """`ibbmaster serve`, which need not have its kernels."""
    primary = IbbPrimary(directory, "--read-only")
    try:
        primary.start()
        yield Contender("ibbmaster", primary.pid, Account(primary.port, primary.user, primary.password))
    finally:
        primary.kill()


def test_the_consumer_reads_all_groups_in_clear_and_just_as_much_over_tls(server):
    plain = one_run(server, 2)
    assert GROUPS * ROW_BYTES < plain.bytes < GROUPS * ROW_BYTES * 1.01
    secret = one_run(server, 2, tls_bytes=plain.bytes)  # which would end with an error if less came
    assert plain.bytes < secret.bytes < plain.bytes * 1.01
    assert plain.mb_per_s > 0 < plain.cpu_s_per_gb


def test_replicas_that_log_in_all_at_once_get_their_first_event(server):
    assert reconnect_s(server.account, f"0-1-{GROUPS - 1}", 20) > 0


@pytest.mark.parametrize("is_secret", [False, True], ids=["in clear", "over TLS"])
def test_waiting_replicas_get_each_group_once(server, writer, is_secret):
    from benchmarks.latency import PACED_PERIOD_S, paced  # it compiles the consumer of benchmarks

    numbers = itertools.count(GROUPS + 1)

    def commit(size: int) -> None:
        writer.write_group(*small_group(next(numbers), size))
        writer.flush()

    sockets = [waiting(server.account, f"0-1-{GROUPS}", is_secret=is_secret) for _ in range(3)]
    delays = paced(sockets, commit, 4 * PACED_PERIOD_S, is_secret=is_secret)
    for one in sockets:
        one.close()
    assert len(delays) == 3 * 4


@pytest.mark.parametrize("cut", [1, 2, 4, 5, 6, 21, 22, 23, 400])
def test_what_comes_in_records_is_counted_once_wherever_they_are_cut(cut):
    from benchmarks.consumer import RECORD_REST, Records

    sizes = [300, 0, 1, 700]
    stream = b"".join(
        b"\x17\x03\x03" + (size + RECORD_REST).to_bytes(2, "big") + bytes(size + RECORD_REST) for size in sizes
    )
    records = Records()
    pieces = [np.frombuffer(stream[at : at + cut], dtype=np.uint8) for at in range(0, len(stream), cut)]
    found = [records.skip(piece, len(piece)) for piece in pieces]
    assert min(found) >= 0
    assert sum(found) == sum(sizes)


def test_every_position_of_a_log_of_large_files_begins_with_the_next_group(tmp_path):
    log = large_log(tmp_path, 5, 1 << 20)
    assert {path.stat().st_size for path in log.log.glob("*.ibb")} == {1 << 30}
    rng = random.Random(5)
    with serving(log.log) as contender:
        for _ in range(20):
            first_event_s(contender.account, log.some_position(rng))  # which ends if another group comes first


@pytest.mark.parametrize(
    ("target", "is_met"),
    [
        (Target(value=1.0, of="peer"), False),
        (Target(value=0.5, of="peer"), True),
        (Target(value=1.0, of="peer", is_ceiling=True), True),
        (Target(value=1.2, of="limit", is_ceiling=True), False),
        (Target(value=5), True),
        (Target(value=5, is_ceiling=True), True),
        (Target(value=4.9, is_ceiling=True), False),
    ],
)
def test_a_target_is_met_or_not(target, is_met):
    figure = Figure(name="f", unit="ms", ours=5.0, peer=10.0, limit=4.0, limit_name="l", target=target)
    assert figure.is_met is is_met
    assert figure.cells()[7] == ("yes" if is_met else "NO")


def test_rows_are_selected_by_patterns_in_the_order_of_the_table():
    from benchmarks.table import selected

    assert selected(["tls", "large-*"]) == ["large-1", "large-16", "tls"]
    with pytest.raises(SystemExit, match="--rows nothing: there are "):
        selected(["tls", "nothing"])
    assert set(ROWS) > FURTHER
