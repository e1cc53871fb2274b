"""Each PySpark from 4.0 on: all of it where the variable IBBMASTER_PYSPARKS names some, and what differs in any case.

The variable has directories with `:` between them, each as `pip install --no-deps --target DIR pyspark==4.0.5` does.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql.types import LongType, StructField, StructType

import ibbmaster
from ibbmaster.errors import ConfigurationError
from ibbmaster.spark import register
from ibbmaster.spark.source import IbbDataSource, options_of
from ibbmaster.spark.stream_reader import PlainStreamReader
from ibbmaster.tables.arrow.options import parse_options

ROOT = Path(__file__).parents[2]
PYSPARKS = os.environ.get("IBBMASTER_PYSPARKS", "")
STREAMS = {"stream": 57, "stream without availableNow": 57}


@pytest.mark.slow
@pytest.mark.usefixtures("java")
@pytest.mark.parametrize("place", [one for one in PYSPARKS.split(":") if one] or [None])
def test_every_version_reads_batches_and_tables_and_streams(place, fixtures, tmp_path):
    if place is None:
        pytest.skip("IBBMASTER_PYSPARKS names no PySpark")
    log, classic = fixtures / "ibb/xa-and-ddl", fixtures / "classic/11.8/domains"
    run = subprocess.run(
        [sys.executable, Path(__file__).with_name("every_version.py"), log, classic, tmp_path],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([place, str(ROOT)])},
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    assert run.returncode == 0, run.stderr[-3000:]
    found = json.loads(run.stdout.splitlines()[-1])
    version = found.pop("version")
    with ibbmaster.open(classic) as of_classic:
        rows = of_classic.to_arrow().num_rows
    assert found == {
        "changes": 57,
        "classic": rows,
        "table": 4,
        "written": 2,
        **STREAMS,
        "most groups in a batch": 5 if version >= "4.2" else 32,  # of others the first batch has all there is
    }, version


class Settings(dict[str, str]):
    def set(self, name: str, value: str) -> None:
        self[name] = value


class OldSession:
    def __init__(self, problem: str) -> None:
        self.registered: list[str] = []
        self.dataSource = self
        self.conf: dict[str, str] = Settings()
        self._problem = problem

    def register(self, source: type[IbbDataSource]) -> None:
        self.registered.append(source.name())
        if source.name() == "ibb":
            raise PySparkException(self._problem)


def test_a_format_that_spark_has_found_by_itself_is_no_error():
    session = OldSession("[DATA_SOURCE_ALREADY_EXISTS] Data source 'ibb' already exists.")
    register(session)
    assert session.registered == ["ibb", "mariadb_binlog"]
    with pytest.raises(PySparkException, match="NO_ROOM"):
        register(OldSession("[NO_ROOM]"))


def test_where_pyspark_gives_no_limits_a_stream_has_the_reader_that_needs_none(fixtures, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyspark.sql.streaming.datasource", None)
    monkeypatch.delitem(sys.modules, "ibbmaster.spark.stream", raising=False)
    source = IbbDataSource({"path": str(fixtures / "ibb/xa-and-ddl")})
    assert type(source.streamReader(StructType())) is PlainStreamReader


def of_catalog(path, **options):
    copies = {f"option.{name}": value for name, value in options.items()}
    return {"location": f"file:{path}", "owner": "root", "provider": "ibb", **copies, **options}


def test_a_table_of_the_catalog_keeps_its_options_in_its_schema(fixtures):
    log = fixtures / "ibb/xa-and-ddl"
    made = IbbDataSource(of_catalog(log, table="shop.parent")).schema()
    assert made.simpleString().endswith("id:int,name:string,extra:string>")
    assert "password" not in made.json()
    again = IbbDataSource({}).reader(StructType.fromJson(json.loads(made.json())))
    assert (again._options.path, again._options.table) == (str(log), "shop.parent")
    assert [field.name for field in again._fields] == made.names
    assert options_of(StructType([StructField("id", LongType())])) == {}
    with pytest.raises(ConfigurationError, match="CREATE TABLE would keep the password"):
        IbbDataSource(of_catalog(log, password="secret")).schema()


def test_an_option_with_a_typo_is_refused_in_the_catalog_too(fixtures):
    for given in (of_catalog(fixtures, tabel="a.b"), {"path": "x", "owner": "root"}):
        with pytest.raises(ConfigurationError, match=r"unknown option (tabel|owner);"):
            parse_options(given)


def test_a_table_of_the_catalog_is_read_by_sql(spark, fixtures):
    log = fixtures / "ibb/xa-and-ddl"
    spark.sql(f"CREATE TABLE parents USING ibb OPTIONS (path '{log}', table 'shop.parent', endingGtid '0-1-34')")
    try:
        found = spark.sql("SELECT _gtid, name FROM parents WHERE id = 3 ORDER BY _offset, _change_no").collect()
        assert [tuple(row) for row in found][-1] == ("0-1-34", "parent 286!")
        assert spark.table("parents").count() < 57
    finally:
        spark.sql("DROP TABLE parents")
