"""A real process that feeds and serves a store is killed, again and again, with a replica attached."""

from __future__ import annotations

import random
import struct
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pymysql
import pytest

from ibbmaster.gtid import GtidPosition
from ibbmaster.store.binlog_store import BinlogStore
from ibbmaster.store.disk import RealDisk
from ibbmaster.store.fault import Totals
from ibbmaster.store.verify import verify
from ibbmaster.testing.feeder import PASSWORD, is_whole

KILLS = 200
AT_ONCE = 2  # stores; most of the time goes to starts of a process
GTID_EVENT = 162


class Replica(threading.Thread):
    """Reads the stream from where it was, for as long as the primary lives; keeps the numbers it got."""

    def __init__(self, port: int, after: int) -> None:
        super().__init__(daemon=True)
        self.latest = after
        self.received = 0
        self.fault: str | None = None
        self._port = port

    def run(self) -> None:
        try:
            connection = pymysql.connect(
                host="127.0.0.1", port=self._port, user="repl", password=PASSWORD, ssl_disabled=True
            )
            position = f"0-1-{self.latest}" if self.latest else ""
            with connection.cursor() as cursor:
                cursor.execute(f"SET @mariadb_slave_capability=4, @slave_connect_state='{position}'")
            connection._execute_command(0x12, struct.pack("<IHI", 4, 2, 77))  # 2: with ANNOTATE_ROWS events
            self._read(connection)
        except (pymysql.Error, OSError, AttributeError):
            pass  # it was killed

    def _read(self, connection: pymysql.Connection) -> None:
        expected = None
        while True:
            packet = connection._read_packet().get_all_data()
            event_type = packet[5]
            if event_type == GTID_EVENT:
                (expected,) = struct.unpack_from("<Q", packet, 20)
                if expected != self.latest + 1:
                    self.fault = f"{expected} after {self.latest}"
                    return
            elif event_type == 160:
                if not is_whole(expected, packet[1:]):
                    self.fault = f"the events of {expected} are not whole"
                    return
                self.latest = expected
                self.received += 1


@pytest.mark.timeout(600)
def test_a_killed_primary_comes_back_with_everything_it_acknowledged_or_sent(tmp_path):
    directories = [tmp_path / str(number) for number in range(AT_ONCE)]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for _ in pool.map(kill_again_and_again, directories, range(20, 20 + AT_ONCE)):
            pass


def kill_again_and_again(directory: Path, seed: int) -> None:
    """Feed one store, kill by kill, and read the whole of it in the end."""
    directory.mkdir()
    chance = random.Random(seed)
    acknowledged = fed = sent = 0
    for number in range(KILLS // AT_ONCE):
        where = f"seed {seed}, kill {number}"
        process = subprocess.Popen(
            [sys.executable, "-m", "ibbmaster.testing.feeder", str(directory), str(number)],
            stdout=subprocess.PIPE,
            text=True,
        )
        first = process.stdout.readline().split()
        assert first, f"{where}: the store did not come back"
        recovered = int(first[3].rpartition("-")[2]) if len(first) > 3 else 0
        assert max(acknowledged, sent) <= recovered <= fed, where
        acknowledged = recovered
        replica = Replica(int(first[1]), sent)
        replica.start()
        for _ in range(chance.randrange(1, 60)):
            line = process.stdout.readline().split()
            fed, acknowledged = (int(line[1]), acknowledged) if line[0] == "fed" else (fed, int(line[1]))
        process.kill()
        for line in process.stdout.read().splitlines():  # what it said before it died
            verb, _, value = line.partition(" ")
            if value:
                fed, acknowledged = (int(value), acknowledged) if verb == "fed" else (fed, int(value))
        process.wait()
        process.stdout.close()
        replica.join()
        assert replica.fault is None, where
        assert replica.latest <= fed, where
        sent = replica.latest
    assert sent > KILLS // AT_ONCE
    with BinlogStore(RealDisk(directory)) as store:
        reader = store.event_groups(store.seek(GtidPosition()))
        count = 0
        while (group := reader.next_group()) is not None:
            count += 1
            assert group.gtid.seq_no == count
            assert is_whole(count, b"".join(map(bytes, group.body)))
        assert count >= max(sent, acknowledged)
    assert list(verify(RealDisk(directory), Totals())) == []
