"""A real process that feeds and serves a store is killed, again and again, with a replica attached.

`pytest tests/simulation/test_kills.py --kills 2000` is the long campaign.
"""

import json
import random
import struct
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pymysql

from ibbmaster.gtid import GtidPosition
from tests.machinery.feeder import PASSWORD, is_whole
from tests.machinery.stores import faults_at, new_store
from tests.tap import ask_for_dump

AT_ONCE = 2  # stores; most of the time goes to starts of a process
GTID_EVENT = 162


class Replica(threading.Thread):
    def __init__(self, port, after):
        super().__init__(daemon=True)
        self.latest = after
        self.fault: str | None = None
        self.end: Exception | None = None
        self._port = port

    def run(self):
        try:
            position = f"0-1-{self.latest}" if self.latest else ""
            self._read(ask_for_dump(self._port, flags=2, server_id=77, position=position, password=PASSWORD))
        except (pymysql.Error, OSError, AttributeError, IndexError) as error:
            self.end = error  # it was killed, or the primary ended the dump

    def _read(self, connection):
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


# As mysql-test/suite/binlog_in_engine/recover_concurrent_dml.test
def test_a_killed_primary_comes_back_with_everything_it_acknowledged_or_sent(tmp_path, request):
    directories = [tmp_path / str(number) for number in range(AT_ONCE)]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        kills = [request.config.getoption("--kills") // AT_ONCE] * AT_ONCE
        for _ in pool.map(kill_again_and_again, directories, range(20, 20 + AT_ONCE), kills):
            pass


def start_feeder(directory, number):
    command = [sys.executable, "-m", "tests.machinery.feeder", str(directory), str(number)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def said_until_killed(feeder, count):
    """Kill a feeder once it has said so many lines: the last number of each verb that it has ever said."""
    lines = [feeder.stdout.readline() for _ in range(count)]
    feeder.kill()
    lines += feeder.stdout.read().splitlines()
    feeder.wait()
    feeder.stdout.close()
    return {verb: int(value) for verb, _, value in (line.partition(" ") for line in lines) if value.strip()}


def kill_again_and_again(directory, seed, kills):
    directory.mkdir()
    rng = random.Random(seed)
    acknowledged = fed = sent = 0
    for number in range(kills):
        where = f"seed {seed}, kill {number}"
        process = start_feeder(directory, number)
        first = process.stdout.readline().split()
        assert first, f"{where}: the store did not come back"
        recovered = int(first[3].rpartition("-")[2]) if len(first) > 3 else 0
        assert max(acknowledged, sent) <= recovered <= fed, where
        acknowledged = recovered
        replica = Replica(int(first[1]), sent)
        replica.start()
        said = said_until_killed(process, rng.randrange(1, 60))
        fed, acknowledged = said.get("fed", fed), said.get("ack", acknowledged)
        replica.join()
        assert replica.fault is None, where
        assert replica.latest <= fed, where
        sent = replica.latest
    assert sent > kills
    with new_store(directory, max_file_bytes=1 << 20) as store:  # as the feeder
        reader, count = store.groups(store.seek(GtidPosition())), 0
        while (group := reader.next_group()) is not None:
            count += 1
            assert group.gtid.seq_no == count
            assert is_whole(count, b"".join(map(bytes, group.body)))
        assert count >= max(sent, acknowledged)
    assert faults_at(directory) == []


def test_a_server_that_was_there_first_serves_a_writer_that_comes_goes_and_is_killed(tmp_path):
    (tmp_path / "log").mkdir()
    (tmp_path / "password").write_text(PASSWORD)
    (tmp_path / "password").chmod(0o600)
    command = [sys.executable, "-m", "ibbmaster", "serve", tmp_path / "log", "--listen", "127.0.0.1:0", "--json"]
    command += ["--tls", "off", "--user", "repl", "--password-file", tmp_path / "password"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        replica = Replica(json.loads(server.stdout.readline())["port"], 0)
        replica.start()
        for number in range(3):
            writer = start_feeder(tmp_path / "log", number)
            assert writer.stdout.readline().startswith("port"), "the server was in its way"
            acknowledged = said_until_killed(writer, 40)["ack"]
            while replica.latest < acknowledged:  # what is in the redo log alone comes, too
                assert replica.is_alive(), (replica.fault, replica.end)
                replica.join(0.05)
        assert replica.fault is None
    finally:
        server.terminate()
        _, errors = server.communicate(timeout=120)
    assert "fail" not in errors
    assert "Traceback" not in errors
