"""Streams of a real server's changes: from its files as it writes them, and from the server; each change once."""

import contextlib
import json
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from lanes.primary import login_of
from lanes.replay import rows_read
from lanes.sql import take_over
from lanes.waiting import wait_until
from pyarrow import parquet

from ibbmaster.errors import IbbMasterError, PositionError, PositionPurgedError, SourceError
from ibbmaster.tables.arrow.options import parse_options
from ibbmaster.tables.arrow.plan import find_fields
from ibbmaster.testkit.mariadb_server import RealPrimary
from tests.machinery.streamed import StreamReading
from tests.simulation.test_stream_kills import kill_all
from tests.slow_workers import SLOW_WORKER
from tests.spark_server import ENDS_WITHIN_SECONDS, SLOW_STARTS_MAX

ALTERED_AT = (6, 9, 13)  # a stream goes on with the columns that it has, or another one begins
RESTARTS = 16
OPTIONS = ("--binlog-format=ROW", "--gtid-strict-mode=1", "--log-slave-updates", "--binlog-row-metadata=FULL")


def login(server: RealPrimary) -> dict[str, str]:
    return {name: str(value) for name, value in login_of(server).items()}


def files(server: RealPrimary) -> dict[str, str]:
    return {"path": str(server.data / "binlog.index")}  # a replica has relay logs beside it


SOURCES: dict[str, Callable[[RealPrimary], dict[str, str]]] = {"files": files, "server": login}
SHAPES = (  # of s.t, one after the other: an ALTER TABLE, its columns, and what an older row has in them
    ("CREATE TABLE s.t (id INT PRIMARY KEY, a INT, b VARCHAR(40))", ("id", "a", "b")),
    ("ALTER TABLE s.t MODIFY a INT AFTER b", ("id", "b", "a")),
    ("ALTER TABLE s.t RENAME COLUMN b TO word", ("id", "word", "a")),
    ("ALTER TABLE s.t ADD COLUMN extra INT DEFAULT 7", ("id", "word", "a", "extra")),
)


class Writer:
    """Who changes s.t, and knows how often each row was changed, by the number that each change writes into a."""

    def __init__(self, server: RealPrimary, rng: random.Random) -> None:
        self.server, self.rng = server, rng
        self.shape = 0
        self.written: list[int] = []
        server.sql("CREATE DATABASE s")
        server.sql(SHAPES[0][0])

    def alter(self) -> None:
        self.shape += 1
        self.server.sql(SHAPES[self.shape][0])

    def write(self, count: int) -> None:
        word = "b" if self.shape < 2 else "word"
        for _ in range(count):
            number = len(self.written) + 1
            self.written.append(number)
            self.server.sql(f"SET gtid_domain_id = {self.rng.choice((0, 0, 5))}")
            if number > 3 and self.rng.random() < 0.3:
                self.server.sql("UPDATE s.t SET a = %s WHERE id = %s", (number, self.rng.randrange(1, 4)))
            else:
                self.server.sql(f"INSERT INTO s.t (id, {word}, a) VALUES (%s, %s, %s)", (number, f"w{number}", number))

    def expect_each_once(self, rows: list[dict[str, Any]]) -> None:
        """Every change was read once, and the rows come to those of the server."""
        made = [row for row in rows if row["_change_type"] in ("insert", "update_postimage")]
        assert Counter(row["a"] for row in made) == Counter(self.written)
        assert len({(row["_gtid"], row["_change_no"]) for row in rows}) == len(rows)
        last: dict[int, dict[str, Any]] = {}
        for row in made:
            if row["id"] not in last or row["a"] > last[row["id"]]["a"]:  # domains may come in any order
                last[row["id"]] = row
        kept = {row["id"]: row for row in self.server.query("SELECT * FROM s.t")}
        assert last.keys() == kept.keys()
        for key, row in last.items():
            own = {"word" if name == "b" and "word" in kept[key] else name: value for name, value in row.items()}
            names = own.keys() & kept[key].keys()  # a stream keeps the columns that it began with
            assert names >= kept[key].keys() - {"extra"}
            assert {name: own[name] for name in names} == {name: kept[key][name] for name in names}


def rotate(server: RealPrimary, *, purges: bool) -> None:
    server.sql("FLUSH BINARY LOGS")
    if purges:
        names = [row[0] for row in server.sql("SHOW BINARY LOGS")]
        server.sql("PURGE BINARY LOGS TO %s", (names[-1],))


@pytest.mark.parametrize(("version", "source"), [("11.8", "files"), ("10.11", "files"), ("11.8", "server")])
def test_each_change_comes_once_over_restarts_ddl_rotations_purges_and_a_failover(version, source, new_following):
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    rng = random.Random(seed)
    first, second = new_following(version, *OPTIONS)
    writer = Writer(first, rng)
    writer.write(3)
    options = SOURCES[source](first) | {"table": "s.t", "maxGroupsPerTrigger": "5"}
    stream = StreamReading(**options)
    restarts = 0
    while restarts < RESTARTS:
        if restarts in ALTERED_AT:
            writer.alter()
        writer.write(rng.randrange(1, 5))
        if restarts in (3, 8):  # all there is was read: what is purged is not missed
            stream.catch_up()
            rotate(writer.server, purges=True)
            writer.write(1)  # a row names the columns of a table whose CREATE TABLE is gone
        if restarts == 11:
            stream.step()  # and not all: the other server has the rest
            take_over(second, first)
            writer.server = second
            stream.begin_anew(**SOURCES[source](second))
            stream.plan()
            restarts += 1
            continue
        match rng.randrange(4):
            case 0:
                stream.plan()  # killed before the batch is read
            case 1:
                _, partitions = stream.plan()
                stream.read(partitions)  # killed before the batch is kept
            case 2:
                stream.step()
        if restarts in ALTERED_AT:
            stream.begin_another()
        else:
            stream.begin_anew()
        stream.plan()  # what is altered between load() and start() is an error of a server's stream
        restarts += 1
        if rng.random() < 0.3:
            rotate(writer.server, purges=False)
    stream.catch_up()
    writer.expect_each_once(stream.rows)
    assert stream.lag["groups"] == 0
    stream.close()


@pytest.mark.parametrize("version", ["11.8", "10.11"])
def test_a_stream_of_a_server_that_has_purged_begins_at_its_oldest_position_and_says_so(version, new_server, caplog):
    server = new_server(version, *OPTIONS)
    whole = StreamReading(**login(server), granularity="groups")
    server.sql("CREATE DATABASE d")
    whole.catch_up()
    assert len(whole.gtids) == 1
    assert not caplog.text
    server.sql("SET gtid_domain_id = 5")
    for name in ("a", "b", "c"):
        server.sql(f"CREATE TABLE d.{name} (id INT)")
        rotate(server, purges=True)
    while len(files_there := server.sql("SHOW BINARY LOGS")) > 1:  # a dump that has just ended holds one for a moment
        server.sql("PURGE BINARY LOGS TO %s", (files_there[-1][0],))
    server.sql("INSERT INTO d.a VALUES (1)")
    head = str(server.sql("SELECT BINLOG_GTID_POS(%s, 4)", (server.sql("SHOW BINARY LOGS")[0][0],))[0][0])
    found = []
    for options in (files(server), login(server)):
        caplog.clear()
        stream = StreamReading(**options, granularity="groups")
        stream.catch_up()
        stream.close()
        assert "the oldest position that is there" in caplog.text
        assert all(gtid in caplog.text for gtid in head.split(","))
        found.append(stream.gtids)
    assert found[0] == found[1]
    assert found[0][-1] == "5-1-4"
    with pytest.raises(
        SourceError, match=r"have been purged\. What comes after that position is gone from here: go on"
    ):
        whole.catch_up()
    whole.begin_anew(**files(server), host="", port="", user="", password="")
    with pytest.raises(
        PositionPurgedError, match="what comes next for this stream is gone from here: let it go on with"
    ):
        whole.catch_up()
    assert len(whole.gtids) == 1
    whole.close()
    rows = StreamReading(**login(server), table="d.a", schema="CREATE TABLE d.a (id INT)")
    rows.catch_up()
    assert [row["id"] for row in rows.rows] == [1]
    rows.close()
    options = parse_options(login(server))
    assert [row["_gtid"] for row in rows_read(options, find_fields(options))] == ["5-1-4"]


def test_a_server_that_lost_what_the_stream_has_is_an_error_and_not_followed(new_server):
    """A failover to one that lagged, and has gone on by itself since."""
    first, second = new_server("11.8", *OPTIONS), new_server("11.8", *OPTIONS, "--server-id=2")
    for server, count in ((first, 3), (second, 5)):
        server.sql("SET gtid_domain_id = 0")
        server.sql("CREATE DATABASE d")
        for number in range(count):
            server.sql(f"CREATE TABLE d.t{number} (id INT)")
    for source in SOURCES.values():
        stream = StreamReading(**source(first), granularity="groups")
        stream.catch_up()
        assert len(stream.gtids) == 4
        stream.begin_anew(**source(second))
        with pytest.raises((SourceError, PositionError)) as caught:
            stream.catch_up()
        assert "0-1-4" in str(caught.value)
        assert isinstance(caught.value, IbbMasterError)
        assert len(stream.gtids) == 4
        stream.close()


def runners() -> set[str]:
    found = set()
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            with contextlib.suppress(OSError):
                if b"python_streaming_source_runner" in (process / "cmdline").read_bytes():
                    found.add(process.name)
    return found


def test_a_query_that_is_stopped_leaves_no_process_connection_or_file(spark, tmp_path, new_server):
    server = new_server("11.8", *OPTIONS)
    server.sql("CREATE DATABASE d")
    temporary = Path(spark._jvm.System.getenv("TMPDIR"))  # of its workers
    before = runners()
    queries = []
    for number, source in enumerate(SOURCES.values()):
        frame = spark.readStream.format("ibb").options(**source(server), granularity="groups", maxGroupsPerTrigger="1")
        writer = frame.load().writeStream.format("noop").option("checkpointLocation", str(tmp_path / str(number)))
        queries.append(writer.trigger(processingTime="0 seconds").start())
    for count in range(3):
        server.sql(f"CREATE TABLE d.t{count} (id INT)")
    for query in queries:
        query.processAllAvailable()
    assert len(runners() - before) == 2
    shown = [json.loads(query.lastProgress["sources"][0]["latestOffset"]) for query in queries]
    assert [one["gtid"] for one in shown] == ["0-1-4", "0-1-4"]
    assert shown[0]["lag"] == {"groups": 0, "bytes": 0, "seconds": 0}
    assert shown[1]["lag"] == {"groups": 0, "seconds": 0}
    for query in queries:
        query.stop()
        assert query.exception() is None
    wait_until(lambda: runners() <= before)
    wait_until(lambda: not server.sql("SELECT * FROM information_schema.PROCESSLIST WHERE USER = %s", (server.user,)))
    assert [path.name for path in temporary.iterdir() if "ibb" in path.name] == []


DRIVER = """
import json, sys
from tests.spark_session import open_session
options, out, checkpoint, mode = sys.argv[1:]
session = open_session("local[2, 4]", name="kills")
frame = session.readStream.format("ibb").options(**json.loads(options)).load()
writer = frame.writeStream.format("parquet").option("path", out).option("checkpointLocation", checkpoint)
writer = writer.trigger(availableNow=True) if mode == "rest" else writer.trigger(processingTime="0 seconds")
query = writer.start()
print("started", flush=True)
query.awaitTermination()
"""


class Driver:
    """A program of Spark that streams s.t into Parquet, to be killed.

    One that ends since Spark did not wait for a slow Python is started anew, as an operator would do it.
    """

    def __init__(self, place: Path) -> None:
        self.out, self._checkpoint, self._log = place / "out", place / "checkpoint", place / "driver.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._slow_starts = 0

    def start(self, options: dict[str, str], mode: str = "on") -> None:
        self._command = [sys.executable, "-c", DRIVER, json.dumps(options), str(self.out), str(self._checkpoint), mode]
        self._run()

    def _run(self) -> None:
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log, start_new_session=True)

    def _runs_again(self) -> bool:
        """Start it anew where it has ended for want of time."""
        if SLOW_WORKER not in self._log.read_text() or self._slow_starts == SLOW_STARTS_MAX:
            return False
        self._slow_starts += 1
        self._run()
        return True

    def committed(self) -> dict[str, Any] | None:
        numbers = [int(path.name) for path in self._checkpoint.glob("commits/[0-9]*")]
        if not numbers:
            return None
        return json.loads((self._checkpoint / "offsets" / str(max(numbers))).read_text().splitlines()[-1])

    def wait_for_progress(self) -> None:
        before = self.committed()
        wait_until(lambda: self.committed() != before or not self._is_running())
        assert self._is_running(), self._log.read_text()[-4000:]

    def _is_running(self) -> bool:
        return self._process.poll() is None or (self._process.returncode > 0 and self._runs_again())

    def finish(self) -> None:
        while self._process.wait(ENDS_WITHIN_SECONDS) != 0:
            assert self._runs_again(), self._log.read_text()[-4000:]

    def kill(self) -> None:
        if self._process is not None:
            kill_all(self._process)
            self._process = None


@pytest.mark.timeout(3600)
def test_each_change_is_in_parquet_once_over_kills_of_spark_ddl_purges_and_a_failover(
    spark, tmp_path, new_following, request
):
    """`--stream-kills 64` kills 16 drivers."""
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    rng = random.Random(seed)
    first, second = new_following("11.8", *OPTIONS)
    writer = Writer(first, rng)
    writer.write(5)
    options = {"table": "s.t", "maxGroupsPerTrigger": "8"}
    driver = Driver(tmp_path)
    try:
        for number in range(request.config.getoption("--stream-kills") // 4):
            driver.start(files(first) | options)
            driver.wait_for_progress()
            if number in (0, 4, 9):
                writer.alter()
            writer.write(rng.randrange(5, 40))
            time.sleep(rng.random())  # nothing to wait for: a kill may come at any moment
            driver.kill()
            rotate(first, purges=False)
            committed = driver.committed()
            assert committed is not None
            first.sql("PURGE BINARY LOGS TO %s", (committed["file"],))
        writer.write(3)
        take_over(second, first)
        writer.server = second
        driver.start(login(second) | options, "rest")
        driver.finish()
    finally:
        driver.kill()
    counted = spark.read.parquet(str(driver.out)).inputFiles()
    files_of_batches = [parquet.ParquetFile(unquote(urlsplit(name).path)) for name in counted]
    writer.expect_each_once([row for file in files_of_batches for row in file.read().to_pylist()])
