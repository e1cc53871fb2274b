"""Nothing is forgotten: whatever ends meanwhile, replicas of a relay come to the tables that were there at a GTID.

Two writers note a hash of their table and the GTID of its last transaction. Meanwhile a log that follows is killed,
its disk is full, connections are cut, servers are killed and replaced, the primary purges what it has, and the bucket
of its archive is dead, slow or refuses. What is compared comes from the bucket alone. With --interop-all there are a
hundred kills, else a few; --forgetless-kills with --timeout=0 sets how many."""

import contextlib
import random
import subprocess
import threading
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pymysql
import pytest
from lanes.following import Following, follow_once, follow_until, purge, source_of
from lanes.primary import ibbmaster, run_program

import ibbmaster as package
from tests.object_stores import ObjectStore, Request

pytestmark = pytest.mark.interop
HASH = "SELECT COUNT(*), BIT_XOR(CRC32(CONCAT_WS('#', id, n, note))) FROM shop.t{}"
DOMAINS = (1, 2)
DISK_MB = 256
DISK_MB_OF_KILL = 1  # a long run writes more
NOTED_EVERY = 5
TIMEOUT_S, TIMEOUT_S_OF_KILL = 600, 3  # of a program that reads all that was logged
EVENTS = {"kill follow": 6, "kill server": 1, "cut": 2, "purge": 2, "fail over": 1, "full disk": 1, "change bucket": 4}
BUCKETS = ("well", "dead", "slow", "refused", "broken off")  # how it answers until the next event of its kind
SLOW_S = 0.5  # for an answer


class Noted(NamedTuple):
    gtid: str
    content: tuple


class Writer:
    """Commits random transactions in a domain of its own to whichever server is the primary."""

    def __init__(self, world, domain_id, seed):
        self.noted: list[Noted] = []
        self.count = 0
        self.may_write = threading.Lock()
        self._world, self._domain_id, self._random = world, domain_id, random.Random(seed)
        self._connection, self._server = None, None
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def stop(self):
        self._is_over.set()
        self._thread.join()
        self._disconnect()

    def _run(self):
        while not self._is_over.is_set():
            with self.may_write:
                try:
                    self._commit()
                except (pymysql.Error, OSError):  # the server was killed, or is not there yet
                    self._disconnect()
            self._is_over.wait(0.01)  # the log of a long run stays small

    def _disconnect(self):
        if self._connection is not None:
            with contextlib.suppress(pymysql.Error):
                self._connection.close()
        self._connection = None

    def _commit(self):
        primary = self._world.primary
        if self._connection is None or self._server is not primary:
            self._disconnect()
            self._connection, self._server = primary.connect(), primary
            with self._connection.cursor() as cursor:
                cursor.execute(f"SET gtid_domain_id={self._domain_id}")
        table, chance = f"shop.t{self._domain_id}", self._random
        with self._connection.cursor() as cursor:
            cursor.execute("BEGIN")
            for _ in range(chance.randrange(1, 4)):
                cursor.execute(f"REPLACE INTO {table} VALUES (%s, %s, %s)", self._row())
                cursor.execute(f"DELETE FROM {table} WHERE id = %s", (chance.randrange(300),))
            cursor.execute(f"REPLACE INTO {table} VALUES (%s, %s, %s)", self._row())
            cursor.execute("COMMIT")
            self.count += 1
            if self.count % NOTED_EVERY == 0:
                cursor.execute("SELECT @@last_gtid")
                (gtid,) = cursor.fetchone()
                cursor.execute(HASH.format(self._domain_id))
                self.noted.append(Noted(gtid, cursor.fetchone()))

    def _row(self):
        chance = self._random
        return chance.randrange(300), chance.randrange(10**6), "x" * chance.randrange(200)


class World:
    """A primary, its replica that may take its place, and a log that follows whichever is the primary."""

    def __init__(self, servers, disk: Path, store: ObjectStore, rng):
        self.primary, self.other = servers
        self.url, self.bucket, self.buckets = store.new_place(), "well", Counter()
        self._is_over = threading.Event()
        store.fault = self._fault
        self.to = disk / "log"
        self._disk, self._random, self.kills = disk, rng, 0
        self.primary.sql("CREATE DATABASE shop")
        for domain_id in DOMAINS:
            self.primary.sql(f"CREATE TABLE shop.t{domain_id} (id INT PRIMARY KEY, n INT, note VARCHAR(200))")
        self.other.follow(self.primary)
        self.following = Following(source_of(self.primary, self.other), self.to, "--archive", self.url)
        self.writers = [Writer(self, domain_id, rng.random()) for domain_id in DOMAINS]

    def happen(self, event):
        getattr(self, event.replace(" ", "_"))()
        self.write_on(self._random.randrange(1, 30))

    def write_on(self, count):
        """Wait until that many transactions more were committed."""
        wanted = sum(writer.count for writer in self.writers) + count
        while sum(writer.count for writer in self.writers) < wanted:
            self._tick()

    def _tick(self):
        self.other.sql("DO SLEEP(0.01)")

    def _fault(self, request: Request) -> int | str | None:
        if self.bucket == "slow":
            self._is_over.wait(SLOW_S)
        half = "break" if request.method == "GET" else None
        return {"dead": 503, "refused": 403, "broken off": half}.get(self.bucket)

    def change_bucket(self):
        self.bucket = self._random.choice([one for one in BUCKETS if one != self.bucket])
        self.buckets[self.bucket] += 1

    def kill_follow(self):
        self.kills += 1
        self.following.kill()
        if self.bucket == "refused":  # that is for people to mend
            refused = follow_once(source_of(self.primary, self.other), self.to, "--archive", self.url)
            assert (refused.returncode, "refuses access" in refused.stderr) == (2, True), refused.stderr
            self.bucket = "well"
        self.following.start()

    def kill_server(self):
        self.kills += 1
        self.primary.kill()
        self.primary.start()

    def cut(self):
        for number, command in self.primary.sql("SELECT id, command FROM information_schema.processlist"):
            if command.startswith("Binlog Dump"):
                with contextlib.suppress(pymysql.Error):  # it has ended meanwhile
                    self.primary.sql(f"KILL {number}")

    def purge(self):
        follow_until(self.to, self.primary)
        with contextlib.ExitStack() as stack:
            for writer in self.writers:
                stack.enter_context(writer.may_write)
            follow_until(self.to, self.primary)
            self._let_other_catch_up()
            purge(self.primary)

    def _let_other_catch_up(self):
        self.other.wait_for_gtid(self.primary.sql("SELECT @@gtid_binlog_pos")[0][0], tolerates_lost_connections=True)

    def fail_over(self):
        with contextlib.ExitStack() as stack:
            for writer in self.writers:
                stack.enter_context(writer.may_write)
            self._let_other_catch_up()
            self.kills += 1
            self.primary.kill()
            self.other.sql("STOP SLAVE")
            self.other.sql("RESET SLAVE ALL")
            self.primary, self.other = self.other, self.primary
        self.other.start()
        self.other.follow(self.primary, position=self.other.sql("SELECT @@gtid_binlog_pos")[0][0])

    def full_disk(self):
        ballast = self._disk / "ballast"
        with contextlib.suppress(OSError), open(ballast, "wb", buffering=0) as file:
            while True:
                file.write(bytes(1 << 14))
        self.write_on(60)
        ballast.unlink()

    def end(self):
        for writer in self.writers:
            writer.stop()
        self.bucket = "well"
        self._is_over.set()
        self.following.stop()
        done = follow_once(source_of(self.primary), self.to, "--archive", self.url)
        assert done.returncode == 0, done.stderr


@pytest.fixture
def kills(request):
    """How many there are to be."""
    return request.config.getoption("--forgetless-kills") or (100 if request.config.getoption("--interop-all") else 2)


@pytest.fixture
def temporary_files(tmp_path, monkeypatch):
    """Those of killed processes go with the test."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))


@pytest.fixture
def small_disk(tmp_path, kills):
    disk = tmp_path / "disk"
    disk.mkdir()
    size = f"size={DISK_MB + kills * DISK_MB_OF_KILL}m"
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", size, "tmpfs", disk], capture_output=True)
    if mounted.returncode:
        pytest.skip("a disk that is full needs the right to mount one")
    yield disk
    subprocess.run(["umount", "-l", disk], check=True)


@pytest.mark.usefixtures("temporary_files")
@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")  # PyMySQL leaves those of killed servers
def test_nothing_is_forgotten(
    new_primary_of, new_replica, new_ibb_primary, version, small_disk, object_store, kills, seed, capsys
):
    is_short = kills < 100
    checks = 4 if is_short else 60
    rng = random.Random(seed)
    world = World((new_primary_of(1), new_primary_of(2)), small_disk, object_store, rng)
    happened = ["change bucket"]
    try:
        while world.kills < kills:
            world.happen(happened[-1])
            happened += rng.choices(list(EVENTS), EVENTS.values())
    except BaseException:
        world.following.kill()
        raise
    finally:
        for writer in world.writers:
            writer.stop()
    world.end()
    limit = {"timeout": TIMEOUT_S + kills * TIMEOUT_S_OF_KILL}
    run_program(ibbmaster("verify", "--strict", str(world.to)), **limit)
    run_program(ibbmaster("diff", str(world.to), world.url), **limit)
    if not is_short:
        run_program(ibbmaster("archive", "verify", world.url), **limit)

    replica = new_replica(version, "--gtid-strict-mode=1", "--slave-parallel-threads=4")
    replica.follow(new_ibb_primary(world.url, "--tls", "off"), start=False)
    replica.follow_until(made := "0-1-3")  # the tables, which no position below may leave out
    wrong = []
    chosen = zip(*(sorted(rng.choices(range(len(writer.noted)), k=checks)) for writer in world.writers), strict=True)
    for places in chosen:
        noted = [writer.noted[place] for writer, place in zip(world.writers, places, strict=True)]
        replica.sql("STOP SLAVE")
        replica.follow_until(",".join((made, *(one.gtid for one in noted))))
        found = [replica.sql(HASH.format(domain_id))[0] for domain_id in DOMAINS]
        wrong += [one.gtid for one, content in zip(noted, found, strict=True) if one.content != content]
    with package.open(world.url) as log:
        transactions = sum(1 for _ in log)
    with capsys.disabled():
        counts = ", ".join(f"{happened[:-1].count(event)} x {event}" for event in EVENTS)
        print(f"\n{version}, seed {seed}: {transactions} transactions, {world.kills} kills ({counts})")
        print(f"the bucket: {', '.join(f'{count} x {what}' for what, count in world.buckets.items())}")
        noted_count = sum(len(writer.noted) for writer in world.writers)
        print(f"{2 * checks} of {noted_count} noted hashes compared, {len(wrong)} wrong")
    assert wrong == []
