import json
import pickle
import random
import shutil
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql.streaming.datasource import ReadAllAvailable

import ibbmaster
from ibbmaster.errors import ConfigurationError, GapError, PositionError, PositionPurgedError, SourceError
from ibbmaster.spark.stream import IbbStreamReader
from ibbmaster.spark.stream_reader import PlainStreamReader
from ibbmaster.tables.arrow.options import parse_options
from ibbmaster.tables.arrow.plan import find_fields, plan_tasks
from ibbmaster.tables.arrow.reading import read_task
from ibbmaster.testkit.primary import FixturePrimary
from tests.machinery.events import make_event
from tests.machinery.streamed import StreamReading
from tests.table_versions import inserts, write_log


class Batches:
    def __init__(self) -> None:
        self.gtids: dict[int, list[str]] = {}

    def take(self, frame, number: int) -> None:
        self.gtids[number] = [row._gtid for row in frame.select("_gtid").collect()]

    def all(self) -> list[str]:
        return [gtid for number in sorted(self.gtids) for gtid in self.gtids[number]]


def run(spark, directory, checkpoint, batches, **options):
    query = (
        spark.readStream.format("ibb")
        .options(**({"granularity": "groups"} | options))
        .load(str(directory))
        .writeStream.foreachBatch(batches.take)
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


def gtids_of(spark, directory, granularity="groups"):
    frame = spark.read.format("ibb").option("granularity", granularity).load(str(directory))
    return [row._gtid for row in frame.select("_gtid").collect()]


def test_a_stream_brings_every_group_once_over_restarts_and_growth(spark, grow, tmp_path):
    batches = Batches()
    for count in (2, 2, 5, 9):
        directory = grow(count)
        run(spark, directory, tmp_path / "checkpoint", batches, maxGroupsPerTrigger="20")

    assert batches.all() == gtids_of(spark, directory)
    assert len(batches.all()) == 155
    assert max(map(len, batches.gtids.values())) == 20


def test_a_transaction_is_never_split_over_two_batches(spark, grow, tmp_path):
    batches = Batches()
    directory = grow(9)
    run(spark, directory, tmp_path / "checkpoint", batches, granularity="events", maxBytesPerTrigger="4k")

    sets = [set(gtids) for gtids in batches.gtids.values()]
    assert len(sets) > 10
    assert sum(map(len, sets)) == len(set.union(*sets)) == 155
    assert batches.all() == gtids_of(spark, directory, "events")


def test_a_stream_from_latest_brings_what_comes_later(spark, grow, tmp_path):
    directory = grow(3)
    before = gtids_of(spark, directory)
    batches = Batches()
    run(spark, directory, tmp_path / "checkpoint", batches, startingOffsets="latest")
    assert batches.all() == []

    grow(5)
    run(spark, directory, tmp_path / "checkpoint", batches)

    assert batches.all() == gtids_of(spark, directory)[len(before) :]


def test_a_position_that_is_not_in_the_log_stops_the_stream(spark, grow, tmp_path):
    with pytest.raises(PySparkException, match="does not hold 0-2-999999"):
        run(spark, grow(2), tmp_path / "checkpoint", Batches(), startingOffsets="0-2-999999")


def test_a_stream_follows_what_the_log_alters(tmp_path):
    old, new = {"id": "int", "a": "varchar(20)"}, {"c": "varchar(20)", "id": "int", "n": "int"}
    path = write_log(tmp_path, "CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(20))", inserts(old, [(1, "x")]))
    options = parse_options({"path": str(path), "table": "db.t"})
    reader = IbbStreamReader(options, find_fields(options))
    start, found, sizes = reader.initialOffset(), [], []
    for first, items in (
        (3, [inserts(old, [(2, "y")])]),
        (4, ["ALTER TABLE t CHANGE a b VARCHAR(20) FIRST, ADD n INT", "ALTER TABLE t RENAME COLUMN b TO c"]),
        (6, [inserts(new, [("z", 3, 7)])]),
    ):
        write_log(path, *items, first=first)
        end = reader.latestOffset(start, ReadAllAvailable())
        for partition in reader.partitions(start, end):
            sizes.append(len(pickle.dumps(partition)))
            found += [row for batch in reader.read(pickle.loads(pickle.dumps(partition))) for row in batch.to_pylist()]
        start = end
    reader.stop()

    assert [(row["id"], row["a"]) for row in found] == [(1, "x"), (2, "y"), (3, "z")]
    assert max(sizes) < 20_000


@pytest.mark.parametrize("is_plain", [False, True], ids=["with limits", "without"])
@pytest.mark.parametrize(
    ("altered", "other"),
    {
        "RENAME COLUMN a TO b": "a string",
        "ADD n INT": "no n",
        "DROP a": "a string",
        "MODIFY id BIGINT": "id int",
    }.items(),
)
def test_a_stream_that_starts_anew_keeps_its_columns_or_says_how(tmp_path, altered, other, is_plain):
    def restarted(**options):
        given = parse_options({"path": str(path), "table": "db.t", **options})
        return (PlainStreamReader if is_plain else IbbStreamReader)(given, find_fields(given))

    def going_on(reader):
        if is_plain:
            reader.partitions(start, start)
        return json.loads(json.dumps(reader.latestOffset(*([] if is_plain else [start, ReadAllAvailable()]))))

    old = {"id": "int", "a": "varchar(20)"}
    path = write_log(tmp_path, "CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(20))", inserts(old, [(1, "x")]))
    first = restarted()
    start = json.loads(json.dumps(first.initialOffset()))
    start = going_on(first)
    assert going_on(restarted()) == start
    write_log(path, f"ALTER TABLE t {altered}", first=3)
    problem = rf"^db\.t: up to 0-1-2 this stream had other columns \({other}\): go on with those by option schemaMode="
    with pytest.raises(ConfigurationError, match=problem):
        going_on(restarted())
    with pytest.raises(ConfigurationError, match=problem):
        restarted().partitions(start, start | {"gtid": "0-1-3"})
    end = going_on(restarted(schemaMode="at:0-1-2"))
    assert (end["gtid"], end["columns"]) == ("0-1-3", start["columns"])


@pytest.mark.parametrize(
    ("position", "logged"), [("0-3-99999", "0-3-7"), ("0-3-7,9-9-9", "nothing of domain 9")], ids=["ahead", "elsewhere"]
)
def test_a_primary_that_has_less_than_the_stream_is_an_error_and_not_followed(position, logged):
    with FixturePrimary(server_id=3) as primary:
        primary.ddl("CREATE DATABASE shop", gtid="0-3-7")
        login = {"host": primary.host, "port": str(primary.port), "user": primary.user, "password": primary.password}
        reader = IbbStreamReader(parse_options({**login, "startingOffsets": position}), ())

        with pytest.raises(SourceError, match=f"the primary has logged {logged}: it lost its end, lags, or is another"):
            reader.latestOffset(reader.initialOffset(), ReadAllAvailable())


CLASSIC = Path(__file__).parents[2] / "fixtures/classic/11.8/domains"
IN_USE = 4 + 17  # where the flags of a FORMAT_DESCRIPTION are, in a file


def of_groups(path, **options):
    return StreamReading(path=str(path), granularity="groups", **options)


def captured():
    return sorted(path for path in CLASSIC.glob("binlog.0*") if path.suffix != ".idx")


def test_traditional_files_that_grow_byte_by_byte_give_each_whole_group_once(tmp_path):
    """As a server does it: a file says that it is in use until the next one is there."""
    rng = random.Random(random.randrange(2**32))
    wanted = of_groups(CLASSIC)
    wanted.catch_up()
    stream, cut = None, 0
    for source in captured()[:4]:
        data = bytearray(source.read_bytes())
        place = tmp_path / source.name
        head = 4 + int.from_bytes(data[13:17], "little")
        head += int.from_bytes(data[head + 9 : head + 13], "little")  # GTID_LIST: a server writes both at once
        data[IN_USE] |= 1
        for size in sorted({head, *(rng.randrange(head, len(data)) for _ in range(6)), len(data)}):
            place.write_bytes(data[:size])
            stream = stream or of_groups(tmp_path, maxGroupsPerTrigger="7")
            if rng.random() < 0.3:
                stream.begin_anew()
            before = len(stream.gtids)
            stream.catch_up()
            assert stream.gtids == wanted.gtids[: len(stream.gtids)]
            cut += before == len(stream.gtids)
        place.write_bytes(source.read_bytes())  # closed
    assert len(stream.gtids) > 40
    assert cut
    stream.close()
    wanted.close()


def test_traditional_files_that_are_purged_while_they_are_streamed_lose_nothing_that_was_read(tmp_path):
    files = captured()
    for source in files[:5]:
        shutil.copy(source, tmp_path)
    stream, wanted = of_groups(tmp_path), of_groups(CLASSIC)
    wanted.catch_up()
    for source in files[:2]:
        stream.all_at_once()
        (tmp_path / source.name).unlink()
    end_of_second = len(stream.gtids)
    for source in files[5:]:
        shutil.copy(source, tmp_path)
        end, partitions = stream.plan()
        if source == files[6]:
            for read in files[2:4]:  # between plan and read
                (tmp_path / read.name).unlink()
        stream.rows += stream.read(partitions)
        stream.offset = end
    assert end_of_second < len(stream.gtids)
    assert stream.gtids == wanted.gtids
    assert stream.offset["file"] == files[-2].name  # the last one has no group yet
    stream.close()
    wanted.close()


def test_a_purge_of_what_was_not_read_is_an_error_with_a_remedy_and_where_loss_is_allowed_the_stream_goes_on(tmp_path):
    files = captured()
    for source in files:
        shutil.copy(source, tmp_path)
    stream = of_groups(tmp_path, maxGroupsPerTrigger="10")
    stream.step()
    _, partitions = stream.plan()
    for source in files[:3]:
        (tmp_path / source.name).unlink()
    with pytest.raises(PositionPurgedError, match=r"binlog\.000001 was purged"):
        stream.read(partitions)
    stream.begin_anew()
    with pytest.raises(
        PositionPurgedError, match="gone from here: let it go on with a log that has it, or with failOnD"
    ):
        stream.plan()
    stream.begin_anew(failOnDataLoss="false")
    stream.catch_up()
    begun = of_groups(tmp_path)
    begun.catch_up()
    assert stream.gtids[10:] == begun.gtids
    assert begun.gtids
    stream.close()
    begun.close()


@pytest.mark.parametrize("limit", [{}, {"maxGroupsPerTrigger": "9"}, {"maxFilesPerTrigger": "1"}])
def test_traditional_files_that_do_not_continue_each_other_are_an_error_and_no_shorter_log(tmp_path, limit):
    for number, source in enumerate((source for source in captured() if not source.name.endswith("4")), start=1):
        shutil.copy(source, tmp_path / f"binlog.{number:06}")
    stream = of_groups(tmp_path, **limit)
    with pytest.raises(PositionError, match=r"binlog\.000004 begins after .*: groups are missing between them"):
        stream.catch_up()
    assert all(row["_file_no"] < 3 for row in stream.rows)
    stream.begin_anew(failOnDataLoss="false")
    stream.catch_up()
    assert stream.gtids == gtids_by(tmp_path)
    stream.close()


def test_a_traditional_file_that_is_missing_in_the_middle_is_an_error_of_stream_and_batch(tmp_path):
    for source in captured():
        if not source.name.endswith("4"):
            shutil.copy(source, tmp_path)
    stream = of_groups(tmp_path)
    options = parse_options({"path": str(tmp_path)})
    for read in (stream.plan, lambda: plan_tasks(options, find_fields(options))):
        with pytest.raises(
            GapError, match=r"binlog\.000005 .*files between binlog\.000003 and binlog\.000005 are missing"
        ):
            read()
    stream.begin_anew(failOnDataLoss="false")
    stream.catch_up()
    assert stream.gtids == gtids_by(tmp_path)
    stream.close()


def gtids_by(path):
    return [str(group.gtid) for source in sorted(path.iterdir()) for group in ibbmaster.open(source).groups()]


def test_a_stream_of_a_log_that_was_purged_begins_with_the_oldest_file_and_says_so(tmp_path, caplog):
    for source in captured()[3:]:
        shutil.copy(source, tmp_path)
    stream = of_groups(tmp_path)
    stream.catch_up()
    assert stream.gtids == gtids_by(tmp_path)
    assert "the stream begins after GTID 0-" in caplog.text
    assert "the oldest position that is there" in caplog.text
    stream.close()


def test_other_files_in_the_place_of_those_that_were_streamed_are_an_error(tmp_path):
    for source in captured()[:2]:
        shutil.copy(source, tmp_path)
    stream = of_groups(tmp_path)
    stream.catch_up()
    for source in captured()[:2]:
        (tmp_path / source.name).unlink()
    with FixturePrimary(server_id=3, profile="classic-11.8") as primary:
        primary.ddl("CREATE DATABASE d")
        primary.save_classic(tmp_path / "made")
    for path in (tmp_path / "made").iterdir():
        shutil.copy(path, tmp_path / path.name.replace("binlog.000000", "binlog.000001"))
    shutil.rmtree(tmp_path / "made")
    with pytest.raises(PositionError):
        stream.plan()
    stream.close()


@pytest.mark.parametrize("kind", ["directory", "traditional"])
def test_progress_says_the_lag_of_a_batch_in_groups_bytes_and_seconds(kind, grow, tmp_path):
    stream = of_groups(grow(9) if kind == "directory" else CLASSIC, maxGroupsPerTrigger="50")
    found = []
    while stream.step():
        found.append(stream.lag)
    assert [one["groups"] for one in found] == sorted((one["groups"] for one in found), reverse=True)
    assert found[0]["groups"] >= 105
    assert found[0]["seconds"] > 86_400
    assert found[0]["bytes"] > found[1]["bytes"] > 1000
    assert found[-1] == {"groups": 0, "bytes": 0, "seconds": 0}
    stream.close()


def test_a_stream_that_ends_with_what_there_is_takes_no_group_that_comes_later(tmp_path):
    with FixturePrimary(server_id=3, profile="classic-11.8") as primary:
        primary.save_classic(tmp_path / "classic", is_live=True)
        primary.ddl("CREATE DATABASE d")
        primary.ddl("CREATE TABLE t (id INT)", database="d")
        stream = of_groups(tmp_path / "classic", maxGroupsPerTrigger="1")
        stream.reader.prepareForTriggerAvailableNow()
        primary.ddl("DROP TABLE t", database="d")
        stream.catch_up()
        assert (stream.batches, len(stream.gtids)) == (2, 2)
        stream.begin_anew()
        stream.catch_up()
        assert (stream.batches, len(stream.gtids)) == (3, 3)
        stream.close()


@pytest.mark.parametrize("limit", [{}, {"maxGroupsPerTrigger": "40"}])
def test_groups_that_a_writer_has_not_brought_to_its_files_yet_are_streamed_too(tmp_path, limit):
    """Also over files that it begins, a purge, and RESET, after which the position is no place in the log."""
    with ibbmaster.create(tmp_path, redo_bytes="1M", max_file_bytes="256K", state_interval_bytes="32K") as log:
        write(log, 1)
        stream = of_groups(tmp_path, **limit)
        for count in (1, 30, 300, 2):
            write(log, count)
            stream.catch_up()
            assert stream.gtids == [str(group.gtid) for group in log.groups()]
            assert stream.lag == {"groups": 0, "bytes": 0, "seconds": 0}
            options = parse_options({"path": str(tmp_path), "granularity": "groups"})
            tasks = plan_tasks(options, find_fields(options))
            assert sum(batch.num_rows for task in tasks for batch in read_task(task)) == len(stream.rows)
        read = len(stream.gtids)
        log.purge(to=log.files[-2].name)
        write(log, 3)
        stream.begin_anew()
        stream.catch_up()
        assert len(stream.gtids) == read + 3
        log.reset()
        write(log, 5)
        with pytest.raises(PositionError):
            stream.catch_up()
        stream.close()


def write(log, count):
    for _ in range(count):
        last = log.state.highest_seq_no(0) or 0
        log.append(f"0-1-{last + 1}", [make_event(23, 1, bytes(3000)), make_event(16, 1, bytes(8))])


def plain(path, **options):
    parsed = parse_options({"path": str(path), "granularity": "groups", **options})
    return PlainStreamReader(parsed, find_fields(parsed))


def test_where_spark_gives_no_limits_the_options_cut_each_batch_after_the_last_one(grow):
    """PySpark 4.0 and 4.1: one that goes on is asked for an empty batch at its offset first, a new one for its end."""
    path, found, sizes = grow(2), [], []
    reader = plain(path, maxGroupsPerTrigger="40")
    first, start = reader.latestOffset(), reader.initialOffset()
    found += [
        row["_gtid"] for one in reader.partitions(start, first) for rows in reader.read(one) for row in rows.to_pylist()
    ]
    start, count = first, len(found)
    grow(9)
    while (end := json.loads(json.dumps(reader.latestOffset()))) != start:
        rows = [row for one in reader.partitions(start, end) for batch in reader.read(one) for row in batch.to_pylist()]
        found += [row["_gtid"] for row in rows]
        sizes.append(len(rows))
        reader.stop()
        start, reader = end, plain(path, maxGroupsPerTrigger="40")
        assert not [
            row for one in reader.partitions(start, start) for one in reader.read(one) for row in one.to_pylist()
        ]
    reader.stop()
    wanted = of_groups(path)
    wanted.catch_up()
    wanted.close()
    assert (found, sizes) == (wanted.gtids, [40, 40, 75 - count])
    reader = plain(path, maxGroupsPerTrigger="40")  # availableNow: the end is asked for first
    assert reader.latestOffset()["gtid"] == start["gtid"]
    reader.stop()


def test_where_spark_gives_no_limits_the_rows_of_a_primary_are_not_streamed():
    with FixturePrimary(server_id=3) as primary:
        login = {"host": primary.host, "port": str(primary.port), "user": primary.user, "password": primary.password}
        with pytest.raises(ConfigurationError, match=r"streams of rows of a primary need PySpark 4\.2 or later"):
            PlainStreamReader(parse_options(login), ()).latestOffset()
        primary.ddl("CREATE DATABASE d")
        assert PlainStreamReader(parse_options(login | {"granularity": "events"}), ()).latestOffset()["gtid"] == "0-3-1"
