import datetime
import json
import lzma
from collections import Counter
from decimal import Decimal

import pytest
from lanes.printed_rows import printed_changes, printed_map, without_untold
from lanes.replay import CLASSIC, created_table, raw_events, readable_captures
from pyspark.errors import PySparkException

import ibbmaster
from ibbmaster.errors import ConfigurationError
from ibbmaster.logs.log.group_content import RowReader, TableFilter, table_name
from ibbmaster.replication.event.rows.changes import ChangeKind
from ibbmaster.replication.event.types import EventType
from ibbmaster.spark.tables import each_batch
from ibbmaster.tables.arrow.options import parse_options
from ibbmaster.tables.arrow.staging import option_names
from tests.table_versions import versions_of, without_statements


@pytest.mark.some_of(6)  # tests/tables reads each of them
@pytest.mark.parametrize("capture", [name for name in readable_captures() if "/big" not in name])  # values of megabytes
def test_the_rows_are_those_that_mariadb_binlog_prints(spark, imported, capture, tmp_path):
    printed = [change for path in binlog_files(CLASSIC / capture, tmp_path) for change in printed_changes(path)]
    directory = imported(capture)
    tables = readable_tables(directory)
    frame = (
        spark.read.format("ibb")
        .option("tables", ",".join(tables))
        .option("partitionBytes", "1m")
        .load(str(directory))
        .select("_table", "_change_type", "before", "after")
    )

    ours = []
    columns = image_columns(directory, tables)
    for table, kind, before, after in frame.collect():
        image = before if kind in ("delete", "update_preimage") else after
        known = next(columns)
        ours.append(without_untold(known, (table, kind.partition("_")[0], printed_map(known, image))))
        if len(ours) <= len(printed):
            printed[len(ours) - 1] = without_untold(known, printed[len(ours) - 1])

    assert next(columns, None) is None
    few = {"11.8/checksum-switch": 17, "10.11/checksum-switch": 17}
    assert len(printed) > (0 if "/statement" in capture else few.get(capture, 20))
    assert ours[: len(printed)] == printed
    rest = {table for table, _, _ in ours[len(printed) :]}
    assert rest <= {"types.generated", "types.versioned"}  # behind what stops the tool


def binlog_files(folder, tmp_path):
    for path in sorted(folder.glob("binlog.0*")):
        if path.suffix == ".xz":
            plain = tmp_path / path.stem
            plain.write_bytes(lzma.decompress(path.read_bytes()))
            yield plain
        elif path.suffix != ".idx":
            yield path


def readable_tables(directory):
    with ibbmaster.open(directory) as log:
        events = (event.data for group in log for event in group.events())
        found = {str(table_name(event)) for event in events if event[4] == EventType.TABLE_MAP}
    return sorted(found - {"types.old_temporal"})


def image_columns(directory, tables):
    reader = RowReader(TableFilter(tuple(tables)), find_version=versions_of(parse_options({"path": str(directory)})).at)
    with ibbmaster.open(directory) as log:
        for group in log:
            for schema, change in reader.changes((event.data for event in group.events()), group.start):
                yield from [schema.columns] * (2 if change.kind is ChangeKind.UPDATE else 1)


def test_ranges_of_any_size_give_the_same_rows_once(spark, fixtures):
    reader = spark.read.format("ibb").option("granularity", "events")
    whole = reader.load(str(fixtures / "ibb/large-groups"))
    cut = reader.option("partitionBytes", "32k").load(str(fixtures / "ibb/large-groups"))

    assert cut.rdd.getNumPartitions() > whole.rdd.getNumPartitions()
    assert cut.collect() == whole.collect()
    assert whole.count() == 158


@pytest.mark.parametrize(
    ("granularity", "count"), [("pages", 40), ("records", 162), ("events", 745), ("groups", 151), ("faults", 0)]
)
def test_each_granularity_has_its_rows(spark, fixtures, granularity, count):
    options = (
        {"granularity": granularity, "schema": str(declared(fixtures))}
        if granularity == "faults"
        else {"granularity": granularity}
    )

    assert spark.read.format("ibb").options(**options).load(str(fixtures / "ibb/types")).count() == count


def declared(fixtures) -> str:
    return '{"types.old_temporal": ' + (
        '{"t3": "time(3)", "dt3": "datetime(3)", "ts3": "timestamp(3)", "t4": "time(4)", "dt4": "datetime(4)", '
        '"ts4": "timestamp(4)", "t6": "time(6)", "dt6": "datetime(6)", "ts6": "timestamp(6)"}}'
    )


def test_classic_files_have_the_same_groups_as_the_log_made_of_them(spark, fixtures):
    names = ["_gtid", "_commit_ts", "events", "bytes", "tables", "query"]
    classic = spark.read.format("mariadb_binlog").option("granularity", "groups")
    ibb = spark.read.format("ibb").option("granularity", "groups")

    ours = ibb.load(str(fixtures / "ibb/domains")).select(names).collect()

    assert ours == classic.load(str(fixtures / "classic/11.8/domains")).select(names).collect()
    assert len(ours) == 155


def test_one_table_has_columns_of_its_own(spark, fixtures):
    frame = spark.read.format("ibb").option("table", "types.temporal").load(str(fixtures / "ibb/types"))
    types = dict(frame.dtypes)
    row = frame.where("id = 1 AND _change_type = 'insert'").first()

    assert (types["d"], types["dt6"], types["ts6"], types["t6"]) == ("date", "timestamp_ntz", "timestamp", "string")
    assert row.d is None  # 0000-00-00 is no day
    assert row.t0 == "734:36:42"
    assert row.dt1 == datetime.datetime(3078, 9, 10, 15, 10, 29, 800000)
    assert row.dt6 == datetime.datetime(8393, 8, 18, 12, 4, 33, 404275)


def test_numbers_keep_every_digit(spark, fixtures):
    frame = spark.read.format("ibb").option("table", "types.numbers").load(str(fixtures / "ibb/types"))
    row = frame.where("id = 1 AND _change_type = 'insert'").first()

    assert row.d65_30 == "-98185056723741226344188539812410349.855171850478762597787783609767"
    assert row.d38_38 == Decimal("-0.26424332201646216083859578073465434591")
    assert row.d18_2 == Decimal("-2734849463901153.91")
    assert row.bit33 == 2**33 - 1


def test_a_dataframe_that_was_filtered_has_all_its_rows_for_the_next_query(spark, fixtures):
    """Whatever Spark is set to: it keeps what a query has pushed into a source."""
    name = "spark.sql.python.filterPushdown.enabled"
    was = spark.conf.get(name, "false")
    spark.conf.set(name, "true")
    try:
        frame = spark.read.format("ibb").load(str(fixtures / "ibb/domains"))
        seqs = [row._seq for row in frame.select("_seq").collect()]
        low, high = frame.where("_seq < 4"), frame.where("_seq >= 4")
        assert 0 < low.count() < len(seqs)
        assert sorted(row._seq for row in frame.select("_seq").collect()) == sorted(seqs)
        assert sorted(row._seq for row in low.union(high).select("_seq").collect()) == sorted(seqs)
        assert low.select("_domain").join(high.select("_domain"), "_domain").count() == sum(
            one._domain == other._domain for one in low.collect() for other in high.collect()
        )
    finally:
        spark.conf.set(name, was)


def test_an_undecodable_value_stops_with_group_table_column_and_type(spark, fixtures, tmp_path):
    path = without_statements(fixtures / "ibb/types", tmp_path / "log")  # they tell the digits of a second
    frame = spark.read.format("ibb").option("tables", "types.old_temporal").load(str(path))

    with pytest.raises(PySparkException, match=r"group 0-1-\d+ at .*types\.old_temporal column \w+ of type"):
        frame.collect()


def test_values_that_cannot_be_read_can_be_had_as_their_bytes(spark, imported, tmp_path):
    capture = "11.8/types-minimal-none"  # the log tells no labels
    log = str(without_statements(imported(capture), tmp_path / "rows"))
    labels = {"a": 1, "b": 2, "ç": 3, "long member": 4}
    created = (created_table(event) for event in raw_events(CLASSIC / capture))
    columns = dict(found for found in created if found is not None)["types.special"]
    fewer = json.dumps({"types.special": columns | {"e": "enum('a')"}})
    reader = spark.read.format("ibb").option("table", "types.special")
    known = [row.e for row in reader.option("schema", json.dumps({"types.special": columns})).load(log).collect()]
    reader = reader.option("schema", fewer)
    with pytest.raises(PySparkException, match=r"types\.special column e of type ENUM.*: label \d of 1"):
        reader.load(log).collect()

    rows = reader.option("onUndecodable", "binary").load(log).collect()

    for row, label in zip(rows, known, strict=True):
        is_readable = label in (None, "", "a")
        assert row.e == (label if is_readable else None)
        assert row._undecodable == ({} if is_readable else {"e": bytearray([labels[label]])})
    assert any(row._undecodable for row in rows)
    generic = spark.read.format("ibb").options(tables="types.special", onUndecodable="binary")
    texts = generic.option("schema", fewer).load(log).collect()
    assert {(row.after or row.before).get("e") for row in texts} >= {"0x02", "a"}


STAGES = [
    ("ibb/domains", {"domain": "2", "server": "77", "dropEmpty": "true"}),
    ("ibb/domains", {"rename": "dom_1=one", "mapDomain": "1=5,2=6", "mapServerId": "77=78"}),
    ("ibb/types", {"after": "0-1-30", "until": "0-1-100", "kinds": "rows,ddl", "except": "types.t*,*.old_*"}),
    ("classic/11.8/chained", {"kinds": "rows,ddl", "dropEmpty": "true"}),
]


@pytest.mark.parametrize(("capture", "given"), STAGES)
def test_a_log_after_stages_is_the_same_in_spark_and_in_python(spark, fixtures, capture, given):
    name = "mariadb_binlog" if capture.startswith("classic") else "ibb"
    columns = ("_gtid", "_table", "_change_type", "before", "after")
    names = {shown: name for name, shown in option_names().items()}
    with ibbmaster.open(fixtures / capture) as log:
        part = log.through(**{names[shown]: value if value != "true" else True for shown, value in given.items()})
        table = part.to_arrow(columns=columns)
        reader = spark.read.format(name).options(**given, partitionBytes="32k")
        found = reader.load(str(fixtures / capture)).select(*columns).collect()
        assert [tuple(one) for one in found] == [
            (*one[:3], *(None if cells is None else dict(cells) for cells in one[3:]))
            for one in zip(*(column.to_pylist() for column in table.columns), strict=True)
        ]
        assert len(found) > 5
        typed = table["_table"][-1].as_py()
        rows = reader.option("table", typed).load(str(fixtures / capture))
        assert [one.asDict() for one in rows.select("_gtid", "_change_no").collect()] == part.to_arrow(
            table=typed, columns=("_gtid", "_change_no")
        ).to_pylist()
        assert rows.columns == part.to_arrow(table=typed).column_names


def test_a_table_of_the_catalog_keeps_its_stages(spark, fixtures):
    path = fixtures / "ibb/domains"
    spark.sql(f"CREATE TABLE part USING ibb OPTIONS (domain '2', rename 'dom_2=two') LOCATION '{path}'")
    try:
        found = {row._table for row in spark.sql("SELECT _table FROM part").collect()}
    finally:
        spark.sql("DROP TABLE part")
    assert found == {"two.t"}


@pytest.mark.parametrize("log", ["ibb/xa-and-ddl", "classic/11.8/domains"])
def test_a_log_in_an_object_store_has_the_same_rows(spark, fixtures, object_store, log):
    url = object_store.copy(fixtures / log).replace("s3:", "s3a:")
    kept = ["_gtid", "_table", "_change_type", "before", "after"]
    local, stored = (spark.read.format("ibb").load(str(path)).select(kept).collect() for path in (fixtures / log, url))
    assert stored == local
    assert len(local) > 20


def test_an_object_store_that_refuses_a_worker_is_one_clear_error(spark, fixtures, object_store):
    url = object_store.copy(fixtures / "ibb/xa-and-ddl")
    object_store.fault = lambda request: 403
    with pytest.raises(PySparkException, match="the object store refuses access: credentials or rights are missing"):
        spark.read.format("ibb").load(url).collect()
    with pytest.raises(PySparkException, match="expected a path, file:// or a URL of an object store"):
        spark.read.format("ibb").load("hdfs://server/log").collect()


def test_a_stream_of_an_object_store_takes_what_comes(spark, fixtures, object_store, tmp_path):
    url = object_store.copy(fixtures / "ibb/xa-and-ddl")
    reader = spark.readStream.format("ibb").option("startingGtid", "").load(url)
    found = []
    query = (
        reader.writeStream.foreachBatch(lambda batch, number: found.extend(batch.select("_gtid").collect()))
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(120)
    assert len(found) == spark.read.format("ibb").load(url).count()


class Gathered:
    def __init__(self, *, stops_in: int) -> None:
        self.changes: dict[int, Counter[str]] = {}  # how many each group has
        self.ends: list[str] = []
        self._stops_in = stops_in

    def take(self, frames, number):
        found = (frame.select("_gtid").collect() for frame in frames.values())
        self.changes[number] = Counter(row["_gtid"] for rows in found for row in rows)
        self.ends.append(frames.end)
        if number == self._stops_in:
            self._stops_in = -1
            raise ValueError("a disk is full")


def test_each_change_of_each_table_comes_once(spark, fixtures, tmp_path):
    log, gathered = fixtures / "ibb/xa-and-ddl", Gathered(stops_in=1)

    def run():
        stream = each_batch(spark, gathered.take, str(log), tables="shop.*", maxGroupsPerTrigger="40")
        stream.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True).start().awaitTermination()

    with pytest.raises(PySparkException, match="a disk is full"):
        run()
    stopped = dict(gathered.changes)
    run()
    with ibbmaster.open(log) as opened:
        table = opened.to_arrow()
    wanted = zip(table["_gtid"].to_pylist(), table["_table"].to_pylist(), strict=True)
    assert sum(gathered.changes.values(), Counter()) == Counter(gtid for gtid, of in wanted if of.startswith("shop."))
    assert gathered.changes[1] == stopped[1]
    assert gathered.ends == ["0-1-40", "0-1-80", "0-1-80", "0-1-93"]


@pytest.mark.parametrize("name", ["startingGtid", "endingTimestamp", "host"])
def test_what_a_stream_of_tables_does_not_take_is_refused(spark, name):
    with pytest.raises(ConfigurationError, match=f"option {name} is not for streams of many tables"):
        each_batch(spark, print, "/srv/ibb", **{name: "0-1-1"})


def test_spans_are_for_streams(spark, fixtures, tmp_path):
    each_batch(spark, print, str(fixtures / "ibb/domains"))
    with pytest.raises(PySparkException, match="format ibb_spans is for readStream"):
        spark.read.format("ibb_spans").load(str(fixtures / "ibb/domains")).count()
